/** @jsxImportSource preact */
/**
 * Legends and charts that hold still under the hand, in Chromium.
 */
import { afterEach, assert, describe, expect, it } from "vitest"
import { page, userEvent } from "vitest/browser"
import { Chart } from "../../../src/web/pages/usage/Chart.tsx"
import { draw } from "./support.tsx"

afterEach(async () => {
  await userEvent.unhover(document.body)
})

const hours = [0, 1, 2, 3].map((hour) => 1_764_000_000 + hour * 3_600)
const chosen: Array<readonly [number, number]> = []

/** A chart with these parts; `value` is each part's value of each hour. */
const drawChart = (parts: ReadonlyArray<string>, value: number) =>
  draw(
    <Chart
      stack={{
        times: hours,
        parts: parts.map((each) => ({
          value: each,
          row: undefined,
          values: hours.map(() => value),
          total: value * hours.length
        }))
      }}
      unit="hour"
      measure="requests"
      currency={null}
      nameOf={({ value: name }) => name ?? ""}
      onRange={(from, to) => chosen.push([from, to])}
    />
  )

const legend = () => [...document.querySelectorAll(".chart .chip")].map(({ textContent }) => textContent)

describe("the chart of usage", () => {
  it("keeps the order of its legend under the pointer, with the newest values", async () => {
    drawChart(["gpt", "claude"], 1)
    await userEvent.hover(page.getByRole("button", { name: /^claude/ }))
    drawChart(["claude", "gpt"], 2)
    await expect.poll(legend).toEqual(["gpt 8", "claude 8"])
    await userEvent.hover(page.getByText("UTC").or(page.getByText("Europe")).first())
    await expect.poll(legend).toEqual(["claude 8", "gpt 8"])
  })

  it("lets a range be dragged over a reload", async () => {
    drawChart(["gpt"], 1)
    const over = document.querySelector(".u-over")!
    const { left, top, width } = over.getBoundingClientRect()
    const move = (type: string, share: number) =>
      (type === "mousedown" ? over : document).dispatchEvent(
        new MouseEvent(type, { clientX: left + share * width, clientY: top + 20, bubbles: true, button: 0 })
      )
    over.dispatchEvent(new MouseEvent("mouseenter", { clientX: left + 0.3 * width, clientY: top + 20 }))
    move("mousedown", 0.3)
    await expect.poll(() => document.querySelector(".u-over")).toBe(over)
    drawChart(["gpt"], 7)
    assert.strictEqual(document.querySelector(".u-over"), over)
    move("mousemove", 0.7)
    move("mouseup", 0.7)
    await expect.poll(() => chosen.length).toBe(1)
    // The values that arrived meanwhile are drawn.
    await expect.poll(() => document.querySelector(".u-over") === over).toBe(false)
  })
})
