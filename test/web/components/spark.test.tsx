/** @jsxImportSource preact */
/**
 * The small bars of a day, in Chromium.
 */
import { assert, describe, it, vi } from "vitest"
import { userEvent } from "vitest/browser"
import { hoursOf } from "../../../src/web/pages/nouns/hours.ts"
import type { UsageRow } from "../../../src/web/pages/usage/rows.ts"
import { Spark } from "../../../src/web/parts/Spark.tsx"
import { useWholeTexts } from "../../../src/web/parts/wholeTexts.ts"
import { draw } from "./support.tsx"

describe("the small bars of a day", () => {
  it("have a bar for each hour, its failures in front, and what there is can be seen", () => {
    const drawn = draw(
      <Spark
        name="Requests of each hour"
        bars={[
          { title: "nothing", all: 0, failed: 0 },
          { title: "much", all: 2_400, failed: 1_200 },
          { title: "little", all: 1, failed: 1 }
        ]}
      />
    )
    const titles = [...drawn.querySelectorAll<HTMLElement>(".bins > span")].map(({ title }) => title)
    const heights = [...drawn.querySelectorAll("g")].map((bar, index) => [
      titles[index],
      ...["ok", "failed"].map((part) => bar.querySelector(`.${part}`)?.getAttribute("height"))
    ])
    assert.deepStrictEqual(heights, [["nothing", "0", "0"], ["much", "24", "12"], ["little", "1", "1"]])
    assert.strictEqual(drawn.querySelector("[role=group]")?.getAttribute("aria-label"), "Requests of each hour")
  })

  it("say what they show on focus: the arrows move between them", async () => {
    const Said = () => {
      useWholeTexts()
      return (
        <Spark name="Requests of each hour" bars={[{ title: "1 request", all: 1 }, { title: "2 requests", all: 2 }]} />
      )
    }
    draw(<Said />)
    const said = () => document.querySelector(".whole:popover-open")?.textContent
    await userEvent.keyboard("{Tab}")
    await vi.waitFor(() => assert.strictEqual(said(), "2 requests"))
    await userEvent.keyboard("{ArrowLeft}")
    await vi.waitFor(() => assert.strictEqual(said(), "1 request"))
  })

  it("an hour without a row has none", () => {
    const end = Date.UTC(2026, 10, 27, 19)
    const row = (hour: string, requests: number, failed: number, duration_p95_ms: number | null) =>
      ({ hour, requests, failed, duration_p95_ms }) as UsageRow
    const hours = hoursOf([row("2026-11-27T18:00:00Z", 7, 2, 900), row("2026-11-26T19:00:00Z", 3, 0, null)], end)
    assert.strictEqual(hours.length, 24)
    assert.deepStrictEqual(hours[0], { at: end - 24 * 3_600_000, all: 3, failed: 0, p95: null })
    assert.deepStrictEqual(hours[23], { at: end - 3_600_000, all: 7, failed: 2, p95: 900 })
    assert.deepStrictEqual(hours[12], { at: end - 12 * 3_600_000, all: 0, failed: 0, p95: null })
  })
})
