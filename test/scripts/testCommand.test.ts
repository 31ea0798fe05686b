/** The command of the tests: its parts, and the figures that it writes into the documents. */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"
import { withFigures } from "../../scripts/figures.ts"
import { filtersOf, testParts } from "../../scripts/testParts.ts"
import { pageText } from "../support/snippets.ts"

const root = path.join(import.meta.dirname, "../..")

/** What runs with everything alone: it is about the repository or what is released, not about a part of the gateway. */
const ofNoPart = ["package", "readme.test.ts", "release", "scripts", "soak"]

/** What is no test. */
const shared = ["fixtures", "setup.ts", "support"]

describe("the parts of the tests", () => {
  it("have every folder of tests in one of them, besides those about the repository", () => {
    const folders = Object.values(testParts).flat().filter((each) => !each.includes("/") || each.endsWith(".ts"))
    assert.deepStrictEqual(
      [...folders, ...ofNoPart, ...shared].toSorted(),
      readdirSync(path.join(root, "test")).toSorted()
    )
  })

  it("are those that the documents name, each with files", () => {
    const row = /^\| `\.\/scripts\/test PART` \|.*$/m.exec(pageText("docs/contributing/commands.md"))?.[0] ?? ""
    assert.deepStrictEqual([...row.matchAll(/`(\w+)`/g)].map(([, name]) => name), Object.keys(testParts))
    for (const name of Object.keys(testParts)) {
      for (const filter of filtersOf(name)!) {
        assert.doesNotThrow(() => readdirSync(path.dirname(path.join(root, `${filter}x`))))
      }
    }
    assert.isUndefined(filtersOf("toString"))
  })
})

describe("the figures of a run", () => {
  const figures = {
    isWhole: false,
    tests: 9375,
    cpu: 750,
    wall: 420,
    files: [{ file: "test/web/journeys.test.ts", cpu: 36.4, wall: 60 }]
  }

  it("take the place of those before, and leave the rest of the page as it is", () => {
    const page =
      "a\n<!-- written by a run: daily -->\nold\n<!-- end -->\nb\n<!-- written by a run: --all -->\n<!-- end -->\n"
    const written = withFigures(page, figures, 2)
    assert.strictEqual(
      written,
      page.replace(
        "old",
        "9,375 tests: 12.5 minutes of CPU time, 7.0 minutes on 2 cores.\nThe dearest files, in seconds of CPU time: `web/journeys` 36."
      )
    )
    assert.include(withFigures(written, { ...figures, isWhole: true, tests: 10_000 }, 4), "-->\n10,000 tests: ")
    assert.throws(() => withFigures("no place", figures, 2), "no place for the figures of a run")
  })

  it("have their places in the documents", () => {
    const page = readFileSync(path.join(root, "docs/contributing/tests.md"), "utf8")
    for (const isWhole of [false, true]) assert.notStrictEqual(withFigures(page, { ...figures, isWhole }, 2), page)
  })
})
