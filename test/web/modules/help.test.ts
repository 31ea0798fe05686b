/**
 * The console's links to the documents lead to pages and rows that exist.
 */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { readFileSync } from "node:fs"
import path from "node:path"
import { anchorsOf } from "../../../scripts/links.ts"
import { settingsFields } from "../../../src/admin/settings/fields.ts"
import { decodeConfig } from "../../../src/config/decodeConfig.ts"
import { pageHelp, settingHelp } from "../../../src/web/state/help.ts"
import { pages } from "../../../src/web/state/route.ts"
import { en } from "../../../src/web/texts/en.ts"

const pageText = (name: string): string =>
  readFileSync(path.join(import.meta.dirname, "../../../docs", `${name}.md`), "utf8")

describe("a link of the console to the documents", () => {
  it("from a page leads to a section with the name of the page", () => {
    for (const page of pages) {
      const [name = "", anchor = ""] = pageHelp(page).replace("../help/", "").split("#")
      assert.include([...anchorsOf(pageText(name))], anchor)
      assert.include(pageText(name), `\n## ${en.common.pages[page]}\n`)
    }
  })

  it("from a setting leads to its row", async () => {
    const { config } = (await Effect.runPromise(decodeConfig({}, { duplicates: "refuse" }))).snapshot
    const fields = settingsFields({}, config)
    assert.isAbove(fields.length, 50)
    for (const { path: setting } of fields) {
      const [page = "", row = ""] = settingHelp(setting).replace("../help/", "").split("#")
      assert.include(pageText(page), `| \`${row}\` |`)
    }
  })
})
