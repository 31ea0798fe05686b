/** The check on prose: where it looks, and what it finds. */
import { assert, describe, it } from "@effect/vitest"
import { oldNamesIn, phrasesIn } from "../../scripts/prose.ts"

const phrase = `who${"ever"}`

describe("the check on prose", () => {
  it.each([
    ["a comment", "src/a.ts", `\n// ${phrase} reads\n`, 2],
    ["a docstring", "src/a.ts", `/**\n * ${phrase} reads\n */\nexport const a = 1\n`, 1],
    ["a phrase over two lines", "src/a.ts", "/** a limit\n * is\n * none */\n", 1],
    ["a string", "src/a.ts", `export const a = "${phrase}"\n`, 1],
    ["a template", "src/a.ts", `export const a = \`\${1} ${phrase}\`\n`, 1],
    ["text of a view", "src/web/a.tsx", `export const a = <p>${phrase}</p>\n`, 1],
    ["a test's title", "test/a.test.ts", `\nit.effect("stops ${phrase}", () => {})\n`, 2],
    ["a title of cases", "test/a.test.ts", `it.each([1])("stops ${phrase}", () => {})\n`, 1],
    ["Markdown", "docs/a.md", `# A\n\n${phrase}\n`, 3],
    ["a shell's comment", "scripts/a.sh", `# ${phrase}\n`, 1]
  ])("finds a phrase in %s", (_, file, text, line) => {
    const [found, ...more] = phrasesIn(file, text)
    assert.match(found ?? "", new RegExp(`^${file}:${line}: "`))
    assert.lengthOf(more, 0)
  })

  it.each([
    ["names", "src/a.ts", `export const ${phrase} = 1\n`],
    ["strings of tests", "test/a.test.ts", `it("is a plain word", () => say("${phrase}"))\n`],
    ["code in Markdown", "docs/a.md", `\`${phrase}\`\n\n\`\`\`ts\n${phrase}\n\`\`\`\n`]
  ])("leaves %s alone", (_, file, text) => {
    assert.deepStrictEqual(phrasesIn(file, text), [])
  })

  it("finds the words of developers in pages for users, and there alone", () => {
    const text = "A caller of the messages API\n"
    assert.lengthOf(phrasesIn("docs/guides/a.md", text), 2)
    for (const file of ["docs/contributing/a.md", "docs/library/a.md"]) {
      assert.deepStrictEqual(phrasesIn(file, text), [])
    }
  })

  it("finds a name that another one has replaced, and leaves properties of other names alone", () => {
    assert.deepStrictEqual(oldNamesIn("src/a.ts", "const a = 1\nexport const told = { tolder: a }\n"), [
      "src/a.ts:2: told: the name is now reported"
    ])
  })
})
