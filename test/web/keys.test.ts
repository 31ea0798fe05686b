/**
 * The list of keys and the form of a key, in Chromium.
 */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import type { Page } from "playwright-core"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import { businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { findings, openSignedIn, useBrowser, type Watched } from "./support.ts"

const browser = useBrowser()
const keys = [businessKey, "a-key-with-two-limits", "a-key-that-ends", "a-plain-key"]
const [first = "", two = "", ends = "", plain = ""] = keys.map((key) => keyId(key, sha256Hex))
let gateway: RunningGateway
let watched: Watched
let page: Page

beforeAll(async () => {
  gateway = await startGateway({
    keys,
    key_records: {
      [first]: { name: "Mobile app", note: "Owner: platform team", limits: [{ window: "day", requests: 5 }] },
      [two]: {
        name: "Website",
        limits: [{ window: "month", requests: 12_345_678, strict: true, fallback: "upstream-chat" }, {
          window: "day",
          tokens: 90_000_000
        }]
      },
      [ends]: { name: "Workshop", expires_at: new Date(Date.now() + 40 * 86_400_000).toISOString() },
      [plain]: { name: "Plain" }
    },
    accounts: []
  })
})
beforeEach(async () => {
  watched = await openSignedIn(browser(), gateway.url, "keys", { viewport: { width: 1440, height: 900 } })
  ;({ page } = watched)
  return () => watched.close()
})
afterAll(() => gateway.stop())

const table = () => page.getByRole("table", { name: "Keys" })
const row = (name: string) => table().getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) })

describe("the list of keys", () => {
  it("has rows of one height and meters of one width, whose words say what else there is", async () => {
    await row("Website").getByText("1 more limit").waitFor()
    const sizes = (selector: string, side: "height" | "width") =>
      page.evaluate<ReadonlyArray<number>>(
        `[...document.querySelectorAll("main ${selector}")].map((each) => each.getBoundingClientRect().${side})`
      )
    for (const [layout, width, most] of [["lines", 1024, 54], ["wide", 1440, 33]] as const) {
      await page.setViewportSize({ width, height: 900 })
      await page.locator(`main .table-box.${layout}`).waitFor()
      // The last row has no line below it.
      const heights = (await sizes("tbody tr", "height")).slice(0, -1)
      assert.isAtMost(heights[0]!, most)
      assert.strictEqual(new Set(heights).size, 1, layout)
      const meters = await sizes(".meter", "width")
      assert.strictEqual(meters.length, 2)
      assert.strictEqual(new Set(meters).size, 1, layout)
    }
    await row("Mobile app").getByText("0 of 5 requests/day").waitFor()
    await row("Mobile app").getByText("Owner: platform team").waitFor()
    // The day of an end without its year, as that is plain.
    await row("Workshop").getByText(/^until \d+ [A-Z][a-z]{2,3}$/).waitFor()
    assert.deepStrictEqual(await findings(page), [])
  })
})
