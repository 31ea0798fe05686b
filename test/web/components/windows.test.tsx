/** @jsxImportSource preact */
/**
 * The windows of an account's quota and its budgets, in Chromium.
 */
import { assert, describe, expect, it } from "vitest"
import { page, userEvent } from "vitest/browser"
import { Windows } from "../../../src/web/parts/Windows.tsx"
import type { AccountItem } from "../../../src/web/state/client.ts"
import { chooseZone } from "../../../src/web/state/preferences.ts"
import { draw } from "./support.tsx"

chooseZone("utc")

const now = Date.UTC(2100, 0, 1, 10)
const given = { now, currency: "USD" } as const

type QuotaWindow = AccountItem["quota"][number]

const window = (change: Partial<QuotaWindow>): QuotaWindow => ({
  window: "5h",
  model: null,
  used: 0.5,
  limit: null,
  remaining: null,
  resets_at: Date.UTC(2100, 0, 2, 14, 32),
  status: "ok",
  seen_at: 0,
  ...change
})

/** The texts, tones and filled widths of the bars. */
const meters = () =>
  [...document.querySelectorAll(".meter")].map((meter) => [
    meter.textContent,
    meter.className.replace(/^meter ?/, ""),
    meter.querySelector<HTMLElement>(".bar span")?.style.width
  ])

describe("the windows of an account in the console", () => {
  it("the fullest one is shown, and a click shows the others", async () => {
    draw(
      <Windows
        {...given}
        quota={[
          window({ used: 0.2 }),
          window({ window: "7d", used: 0.85, status: "low" }),
          window({ window: "tokens", model: "small", used: 0.97, status: "exhausted" }),
          window({ window: "30m", used: 1, status: "exhausted", resets_at: now - 1 })
        ]}
      />
    )
    const fullest = page.getByText("Tokens of small used up, resets 2 Jan 14:32")
    await expect.element(fullest).toBeVisible()
    await expect.element(page.getByTitle("3 more windows")).toHaveTextContent("+3")
    const other = page.getByText("7d 85 %, resets 2 Jan 14:32")
    await expect.element(other).not.toBeVisible()
    await userEvent.click(fullest)
    await expect.element(other).toBeVisible()
    assert.deepStrictEqual(meters(), [
      ["Tokens of small used up, resets 2 Jan 14:32", "bad", "100%"],
      ["7d 85 %, resets 2 Jan 14:32", "warn", "85%"],
      ["5h 20 %, resets 2 Jan 14:32", "", "20%"],
      // Its reset has passed.
      ["30m 0 %", "", "0%"]
    ])
  })

  it("budgets are among them", () => {
    const budget = {
      window: "day",
      resets_at: "2100-01-02T00:00:00.000Z",
      requests: null,
      tokens: { used: 900, limit: 1_000, remaining: 100 },
      cost: { used: "41.2", limit: "50", remaining: "8.8" }
    } as const
    draw(<Windows {...given} quota={[window({})]} budgets={[budget]} />)
    assert.deepStrictEqual(meters().map(([text]) => text), [
      "900 of 1,000 tokens/day, resets 2 Jan 00:00",
      "$41.20 of $50/day, resets 2 Jan 00:00",
      "5h 50 %, resets 2 Jan 14:32"
    ])
  })

  it("one needs no click, and an account without any has no bar", () => {
    assert.isNull(draw(<Windows {...given} quota={[window({})]} />).querySelector("details"))
    assert.strictEqual(draw(<Windows {...given} quota={[]} />).textContent, "")
    assert.strictEqual(draw(<Windows {...given} />).textContent, "")
  })
})
