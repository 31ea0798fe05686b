/** The check of links and pages, `scripts/links.ts` and `scripts/pages.ts`. */
import { assert, describe, it } from "@effect/vitest"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { anchorsOf, brokenLinks } from "../../scripts/links.ts"
import { pageFaults, wordsOf } from "../../scripts/pages.ts"

describe("the check of pages", () => {
  it("reports a page that is too long, that no link reaches, or that links to no page", () => {
    const texts = new Map([
      ["README.md", "[a](docs/a.md) [long](docs/guides/long.md) [fields](docs/reference/fields.md)"],
      ["docs/a.md", "[top](../README.md)"],
      ["docs/guides/long.md", `[a](../a.md)${" word".repeat(700)}`],
      ["docs/guides/lost.md", "[long](long.md)"],
      ["docs/guides/end.md", "[own](#heading) [other](https://a.example)"],
      ["docs/reference/fields.md", `[a](../a.md)${" word".repeat(700)}`]
    ])
    assert.deepEqual(pageFaults(texts), [
      "docs/guides/long.md: 701 words, at most 700: split it",
      "docs/guides/lost.md: no link leads to it",
      "docs/guides/end.md: no link leads to it",
      "docs/guides/end.md: links to no page"
    ])
  })

  it("counts words of prose and tables, not of code and generated tables", () => {
    const made = "<!-- made by `npm run docs`: a -->\n\n| x y z |\n\n<!-- end -->"
    assert.strictEqual(wordsOf(`# Two words\n\n| a | b |\n\n\`\`\`sh\na b c\n\`\`\`\n\n${made}\n`), 4)
    assert.strictEqual(wordsOf("网关网关 API"), 3)
  })
})

describe("the check of links", () => {
  it("reports files and headings that do not exist", () => {
    const folder = mkdtempSync(path.join(tmpdir(), "links-"))
    try {
      mkdirSync(path.join(folder, "docs/a"), { recursive: true })
      writeFileSync(
        path.join(folder, "README.md"),
        "[a](docs/a/b.md#one-two) `[code](none.md)`\n```\n[code](none.md)\n```\n"
      )
      writeFileSync(
        path.join(folder, "docs/a/b.md"),
        "# One, two\n\n[up](../../README.md)\n[gone](c.md)\n[no](#three)\n[web](https://a.example/x.md)\n"
      )
      assert.deepEqual(brokenLinks(folder), [
        "docs/a/b.md:4: no such file: c.md",
        "docs/a/b.md:5: no such heading: #three"
      ])
    } finally {
      rmSync(folder, { recursive: true })
    }
  })

  it("names headings as GitHub does", () => {
    assert.deepEqual([...anchorsOf("# A key's `x_y` (two)\n## Same\n## Same\n## 概念")], [
      "a-keys-x_y-two",
      "same",
      "same-1",
      "概念"
    ])
  })
})
