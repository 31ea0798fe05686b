/**
 * The series of the usage chart.
 */
import { assert, describe, it } from "@effect/vitest"
import { viewMeasures } from "../../../src/admin/usage/rows.ts"
import { zero } from "../../../src/usage/UsageEntry.ts"
import { seriesOf, type UsageRow } from "../../../src/web/pages/usage/rows.ts"

const row = (time: { readonly hour: string } | { readonly day: string }, requests: number): UsageRow => ({
  ...viewMeasures(zero()),
  ...time,
  requests,
  total_tokens: requests * 10
})

const at = (time: string): number => Date.parse(time) / 1000

describe("seriesOf, the series of the usage chart", () => {
  it("contains every requested hour, with zeros for hours without a row", () => {
    const rows = [row({ hour: "2026-11-21T22:00:00Z" }, 3), row({ hour: "2026-11-22T01:00:00Z" }, 5)]
    const asked = { from: "2026-11-21T21:00:00Z", to: "2026-11-22T03:00:00Z", rows, truncated: false }
    const [times, requests, tokens] = seriesOf(asked, "hour")
    assert.deepStrictEqual(times, [0, 1, 2, 3, 4, 5].map((hour) => at(asked.from) + hour * 3600))
    assert.deepStrictEqual(requests, [0, 3, 0, 0, 5, 0])
    assert.deepStrictEqual(tokens, [0, 30, 0, 0, 50, 0])
    // Values after the end of a truncated reply are unknown.
    assert.deepStrictEqual(seriesOf({ ...asked, truncated: true }, "hour")[1], [0, 3, 0, 0, 5])
  })

  it("contains every requested day, partial first and last days included", () => {
    const rows = [row({ day: "2026-02-27" }, 1), row({ day: "2026-03-02" }, 2)]
    const asked = { from: "2026-02-27T09:00:00Z", to: "2026-03-02T10:00:00Z", rows, truncated: false }
    assert.deepStrictEqual(seriesOf(asked, "day"), [
      ["2026-02-27", "2026-02-28", "2026-03-01", "2026-03-02"].map((day) => at(`${day}T00:00:00Z`)),
      [1, 0, 0, 2],
      [10, 0, 0, 20]
    ])
  })
})
