/**
 * Pictures of every page and of its states, with fixed data, fonts, clock and browser, compared with the committed ones. Another platform or
 * browser draws letters differently: there the comparison is skipped, and the run says so.
 *
 * `UPDATE_PICTURES=1` writes them anew: look at each changed one before it is committed. A picture that differs is written to
 * `node_modules/.cache/pictures`.
 */
import { assert, describe, it } from "@effect/vitest"
import { findings, findingsOfThemes } from "../support.ts"
import { lowControls, smallTargets } from "../targets.ts"
import { compare } from "./camera.ts"
import { badlyPlaced, cutCells, cutNumbers, cutTexts, fits, tooWide } from "./checks.ts"
import { widths } from "./pages.ts"
import { pinned, useStage } from "./stage.ts"
import { editLongKey, longReplies, states } from "./states.ts"

describe("pictures of states", () => {
  const stage = useStage()
  const { show } = stage

  it("long names and numbers of eight digits are whole, or have their whole text, in wide and narrow windows", async () => {
    const page = stage.page()
    await page.emulateMedia({ colorScheme: "light" })
    for (const route of ["requests", "keys", "accounts", "overview"]) {
      await page.setViewportSize({ width: 1440, height: 900 })
      await show({ name: "long", route, replies: longReplies })
      for (const width of widths) {
        await page.setViewportSize({ width, height: 900 })
        await fits(page, `${route} at ${width}`)
        assert.deepStrictEqual(await cutTexts(page), [], `${route} at ${width}`)
        if (route !== "requests" || width !== 1440) continue
        const [cut, cells] = await page.evaluate<readonly [number, number]>(cutCells)
        assert.isAtMost(cut / cells, 0.05, `${cut} of ${cells} cells are cut`)
      }
    }
    await show({ name: "long", route: "keys", replies: longReplies, open: editLongKey })
    for (const width of widths) {
      await page.setViewportSize({ width, height: 900 })
      assert.deepStrictEqual(await page.evaluate(cutNumbers), [], `at ${width}`)
    }
  })

  it("many accounts are as many in what needs attention as in the pool", async () => {
    const page = stage.page()
    await page.setViewportSize({ width: 1440, height: 900 })
    await show(states.find(({ name }) => name === "overview-300")!)
    const numbersOf = async (name: string, texts: RegExp) => {
      const text = await page.getByRole("region", { name, exact: true }).innerText()
      return [...text.matchAll(texts)].map(([, count]) => Number(count)).toSorted((a, b) => a - b)
    }
    await page.getByRole("region", { name: "Pool" }).getByText("Cooling down").waitFor()
    assert.deepStrictEqual(
      await numbersOf("Needs attention", /^(\d+) accounts$/gm),
      await numbersOf("Pool", /(\d+)\s+(?:Cooling down|Out of rotation)/g)
    )
  })

  describe.each(states)("$name", (state) => {
    it("has nothing that axe finds in light and dark, cuts no number, has room to press, and looks as committed", async () => {
      const page = stage.page()
      const { name, narrow = false, pale = false, part } = state
      const isWide = narrow !== "alone"
      await page.setViewportSize({ width: isWide ? 1440 : 390, height: 900 })
      await page.emulateMedia({ colorScheme: "light" })
      await show(state)
      const wrong: Array<string> = []
      const look = async (width: number, theme: string) => {
        if (pinned !== undefined) {
          const shown = width < 1440 || part === undefined ? undefined : page.locator(part)
          wrong.push(...await compare(page, `${name}-${theme}-${width}`, shown))
        }
        wrong.push(
          ...await page.evaluate<Array<string>>(cutNumbers),
          ...await page.evaluate<Array<string>>(tooWide),
          ...await page.evaluate<Array<string>>(badlyPlaced),
          ...await smallTargets(page)
        )
      }
      if (isWide) await look(1440, "light")
      const found = await findingsOfThemes(page, part)
      wrong.push(...found.filter((finding) => !(pale && finding.startsWith("color-contrast"))))
      if (narrow !== false) {
        await page.setViewportSize({ width: 390, height: 900 })
        await page.emulateMedia({ colorScheme: "dark" })
        await look(390, "dark")
        wrong.push(...await findings(page, part))
        wrong.push(...await lowControls(page))
      }
      assert.deepStrictEqual(wrong, [])
    })
  })
})
