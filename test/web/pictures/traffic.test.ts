/** Pictures of the pages about requests. */
import { assert, describe, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { settled } from "../support.ts"
import { testPages } from "./pages.ts"
import { keys, sessionOf } from "./world.ts"

describe("pictures of the pages about requests", () => {
  const stage = testPages([
    ["overview", "overview"],
    ["requests", "requests"],
    ["request-streamed", ({ requests }) => `requests/${requests.streamed}`],
    ["request-failed", ({ requests }) => `requests/${requests.failed}`],
    ["request-running", ({ requests }) => `requests/${requests.running}`],
    ["usage", "usage"],
    ["usage-by-key", "usage?by=key"],
    ["request-comparison", ({ requests }) => `requests/${requests.streamed}?with=${requests.failed}`],
    ["sessions", "sessions"],
    ["session", `sessions/${sessionOf(2)}?key=${keys[2]!.id}`],
    ["playground", "playground"]
  ])
  it("on a phone the table of usage begins in the first window", async () => {
    const page = stage.page()
    await page.setViewportSize({ width: 390, height: 850 })
    await stage.goTo("usage")
    const { y } = (await page.getByRole("table", { name: "Usage" }).boundingBox())!
    assert.isBelow(y, 850)
  })

  it("what they show adds up: each filter, search, order and sum is the gateway's own", async () => {
    const page = stage.page()
    await page.setViewportSize({ width: 1440, height: 900 })
    await stage.goTo("usage?by=key")
    const rows = await columnOf(page, "Requests")
    assert.strictEqual(sum(rows.slice(0, -1)), rows.at(-1))
    const costs = await columnOf(page, "Cost in USD")
    assert.deepStrictEqual(costs.slice(0, -1), costs.slice(0, -1).toSorted((a, b) => b - a))
    assert.closeTo(sum(costs.slice(0, -1)), costs.at(-1)!, 0.01 * costs.length)

    await stage.goTo("requests?status=failed")
    const failed = await page.locator("main tbody tr").allTextContents()
    assert.isAtLeast(failed.length, 5)
    assert.deepStrictEqual(failed.filter((row) => !/[a-z]_[a-z_]+ ?[45]\d\d/.test(row)), [])

    await stage.goTo("accounts?q=ada")
    await settled(page)
    const names = await page.locator("main tbody th a").allTextContents()
    assert.isAtLeast(names.length, 4)
    assert.deepStrictEqual(names.filter((name) => !name.includes("ada")), [])
  })
})

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

/** The numbers of a column of the first table, its last row included. */
const columnOf = (page: Page, name: string): Promise<ReadonlyArray<number>> =>
  page.evaluate((wanted) => {
    const { document } = globalThis as unknown as {
      readonly document: { readonly querySelector: (of: string) => Table }
    }
    interface Table {
      readonly rows: ArrayLike<{ readonly cells: ArrayLike<{ readonly textContent: string }> }>
    }
    const rows = Array.from(
      document.querySelector("main table").rows,
      ({ cells }) => Array.from(cells, (each) => each.textContent)
    )
    const at = rows[0]!.findIndex((head) => head.startsWith(wanted))
    return rows.slice(1).map((cells) => Number(/[\d.]+/.exec(cells[at]!.replaceAll(",", ""))?.[0]))
  }, name)
