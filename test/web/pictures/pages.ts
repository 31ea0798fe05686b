/**
 * The tests of the pictures of pages: what is wrong with a page as it is drawn, and whether it looks as committed.
 *
 * A daily run looks at both themes in the wide window and at light in the narrow one. `--all`, and `UPDATE_PICTURES=1`, look at each theme at
 * each width. axe searches a page in the wide window, and in a daily run at one of the other widths, which pages take in turn.
 */
import { assert, describe, it } from "@effect/vitest"
import { inTurn, isWhole } from "../../support/effort.ts"
import { findings } from "../support.ts"
import { lowControls, smallTargets } from "../targets.ts"
import { compare, updates } from "./camera.ts"
import { badlyPlaced, cutTexts, fits, foreignText, missingGlyphs, outOfTables, tallCards } from "./checks.ts"
import { pinned, type Route, type Stage, useStage } from "./stage.ts"

/** All widths of windows that pictures are taken in. */
export const allWidths: ReadonlyArray<number> = [1440, 1024, 390]

/** The widths of windows in which this run looks at a page, in pixels. */
export const widths: ReadonlyArray<number> = isWhole || updates ? allWidths : [1440, 390]

const looks: ReadonlyArray<readonly [theme: "light" | "dark", widths: ReadonlyArray<number>]> = [
  ["light", widths],
  ["dark", isWhole || updates ? allWidths : [1440]]
]

/** Tests pages, each by the name of its pictures and its address. Returns their stage. */
export const testPages = (pages: ReadonlyArray<readonly [name: string, route: Route]>): Stage => {
  const stage = useStage()
  const { goTo, page } = stage

  it.each(pages.map(([name, route], index) => ({ name, route, searched: [1440, ...inTurn([1024, 390], index)] })))(
    "$name draws every character in the typefaces of the pictures, and in wide and narrow windows has nothing that axe finds, cuts no number and has room to press",
    async ({ route, searched }) => {
      await page().setViewportSize({ width: 1440, height: 900 })
      await page().emulateMedia({ colorScheme: "light" })
      await goTo(route)
      assert.deepStrictEqual(await foreignText(page()), [])
      assert.deepStrictEqual(await missingGlyphs(page()), [])
      for (const width of searched) {
        await page().setViewportSize({ width, height: 900 })
        await fits(page(), `at ${width}`)
        assert.deepStrictEqual(await findings(page()), [], `axe at ${width}`)
      }
      // Contrast is the rule that a theme decides.
      await page().emulateMedia({ colorScheme: "dark" })
      if (isWhole) assert.deepStrictEqual(await findings(page(), "html", "color-contrast"), [])
      // The same page at each width: it is not wider than the window, and no number and no filled field is cut.
      for (const width of widths) {
        await page().setViewportSize({ width, height: 900 })
        await fits(page(), `at ${width}`)
        assert.deepStrictEqual(await cutTexts(page()), [], `at ${width}`)
        assert.deepStrictEqual(await page().evaluate(outOfTables), [], `at ${width}`)
        assert.deepStrictEqual(await page().evaluate(badlyPlaced), [], `at ${width}`)
        assert.deepStrictEqual(await smallTargets(page()), [], `at ${width}`)
        assert.deepStrictEqual(await page().evaluate(tallCards), [], `at ${width}`)
      }
      assert.deepStrictEqual(await lowControls(page()), [])
    }
  )

  describe.skipIf(pinned === undefined).each(pages)("%s", (name, route) => {
    it.each(looks)("looks as committed in %s in wide and narrow windows", async (theme, widths) => {
      await page().emulateMedia({ colorScheme: theme })
      const wrong: Array<string> = []
      for (const width of widths) {
        await page().setViewportSize({ width, height: 900 })
        await goTo(route)
        await page().mouse.move(0, 0)
        wrong.push(...await compare(page(), `${name}-${theme}-${width}`, "page"))
      }
      assert.deepStrictEqual(wrong, [])
    })
  })
  return stage
}
