/** The Chinese pages have the structure and the commands of the English ones. */
import { assert, describe, it } from "@effect/vitest"
import { markdownFiles } from "../../scripts/links.ts"
import { root } from "../support/checkout.ts"
import { pageText } from "../support/snippets.ts"

const translations = markdownFiles(root).filter((file) => file.endsWith(".zh.md")).toSorted()

/** What both languages have: levels of headings, columns of tables, commands, code in the text. */
const structureOf = (text: string) => {
  const blocks = [...text.matchAll(/^```([^\n]*)\n([^]*?)^```$/gm)]
  const prose = text.replaceAll(/^```[^]*?^```$/gm, "")
  return {
    headings: [...prose.matchAll(/^(#+) /gm)].map(([, level = ""]) => level.length),
    // Text is a picture or an example whose comments are translated.
    blocks: blocks.map(([, info = "", code = ""]) => info === "text" ? info : `${info}\n${code}`),
    commands: [...prose.matchAll(/^ {4}(\S.*)$/gm)].map(([, command = ""]) => command),
    rows: [...prose.matchAll(/^\|.*\|$/gm)].map(([row]) => row.split("|").length),
    code: [...new Set(Array.from(prose.matchAll(/`[^`\n]+`/g), ([code]) => code))].toSorted()
  }
}

describe("the Chinese pages", () => {
  it("are those that a new reader needs", () => {
    assert.deepEqual(translations, [
      "README.zh.md",
      "docs/migrate/from-one-api.zh.md",
      "docs/operate/troubleshooting.zh.md",
      "docs/start/concepts.zh.md",
      "docs/start/quickstart.zh.md"
    ])
  })

  it.each(translations)("have the headings, tables, commands and code of the English ones: %s", (file) => {
    assert.deepEqual(structureOf(pageText(file)), structureOf(pageText(file.replace(".zh.md", ".md"))))
  })
})
