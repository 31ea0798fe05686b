import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { formatTimestamp } from "../../src/domain/time.ts"
import { windowNames } from "../../src/domain/windowNames.ts"
import { windowAt } from "../../src/usage/windows.ts"

const time = fc.integer({ min: 0, max: 4_102_444_800_000 })

describe("windows of limits", () => {
  it("begin with the minutes, hours, days, Mondays and months of UTC, including in leap years and at year ends", () => {
    const cases = [
      ["2028-02-29T23:59:59Z", {
        minute: "2028-02-29T23:59:00Z 2028-03-01T00:00:00Z",
        hour: "2028-02-29T23:00:00Z 2028-03-01T00:00:00Z",
        day: "2028-02-29T00:00:00Z 2028-03-01T00:00:00Z",
        week: "2028-02-28T00:00:00Z 2028-03-06T00:00:00Z",
        month: "2028-02-01T00:00:00Z 2028-03-01T00:00:00Z"
      }],
      ["2026-12-31T12:30:30Z", {
        minute: "2026-12-31T12:30:00Z 2026-12-31T12:31:00Z",
        hour: "2026-12-31T12:00:00Z 2026-12-31T13:00:00Z",
        day: "2026-12-31T00:00:00Z 2027-01-01T00:00:00Z",
        week: "2026-12-28T00:00:00Z 2027-01-04T00:00:00Z",
        month: "2026-12-01T00:00:00Z 2027-01-01T00:00:00Z"
      }]
    ] as const
    for (const [at, expected] of cases) {
      for (const window of windowNames) {
        const { end, start } = windowAt(window, Date.parse(at))
        assert.strictEqual(`${formatTimestamp(start)} ${formatTimestamp(end)}`, expected[window], `${window} of ${at}`)
      }
    }
  })

  it("contain every time exactly once, and follow one another without a gap", () => {
    fc.assert(fc.property(time, fc.constantFrom(...windowNames), (at, window) => {
      const span = windowAt(window, at)
      assert.isTrue(span.start <= at && at < span.end)
      assert.deepStrictEqual(windowAt(window, span.start), span)
      assert.deepStrictEqual(windowAt(window, span.end - 1), span)
      assert.strictEqual(windowAt(window, span.end).start, span.end)
    }))
  })

  it("contain the shorter windows whole, except weeks in months", () => {
    fc.assert(fc.property(time, (at) => {
      const [minute, hour, day, week, month] = windowNames.map((window) => windowAt(window, at))
      for (const [inner, outer] of [[minute, hour], [hour, day], [day, week], [day, month]] as const) {
        assert.isTrue(outer!.start <= inner!.start && inner!.end <= outer!.end)
      }
      assert.strictEqual(new Date(week!.start).getUTCDay(), 1)
      assert.strictEqual(new Date(month!.start).getUTCDate(), 1)
    }))
  })
})
