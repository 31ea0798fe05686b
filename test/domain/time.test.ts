import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { formatTimestamp, parseTimestamp } from "../../src/domain/time.ts"

describe("RFC 3339 times", () => {
  it("are parsed in every zone and written in UTC", () => {
    const cases: ReadonlyArray<readonly [text: string, utc: string]> = [
      ["2027-01-31T00:00:00Z", "2027-01-31T00:00:00Z"],
      ["2027-01-31t01:30:00+01:30", "2027-01-31T00:00:00Z"],
      ["2026-12-31 19:00:00-05:00", "2027-01-01T00:00:00Z"],
      ["2028-02-29T23:59:59.25Z", "2028-02-29T23:59:59.250Z"],
      ["2028-02-29T23:59:59.0009Z", "2028-02-29T23:59:59Z"],
      ["0050-03-01T00:00:00Z", "0050-03-01T00:00:00Z"]
    ]
    for (const [text, utc] of cases) assert.strictEqual(formatTimestamp(parseTimestamp(text)!), utc, text)
  })

  it("are rejected when a part is missing or the date does not exist", () => {
    for (
      const text of [
        "",
        "2027-01-31",
        "2027-01-31T00:00:00",
        "2027-01-31T00:00Z",
        "2027-02-30T00:00:00Z",
        "2027-02-29T00:00:00Z",
        "2027-13-01T00:00:00Z",
        "2027-00-10T00:00:00Z",
        "2027-01-00T00:00:00Z",
        "2027-01-01T24:00:00Z",
        "2027-01-01T23:60:00Z",
        "2027-01-01T23:59:60Z",
        "2027-01-01T00:00:00+24:00",
        "1767225600"
      ]
    ) assert.strictEqual(parseTimestamp(text), undefined, text)
  })

  it("survive a round trip", () => {
    fc.assert(fc.property(fc.integer({ min: 0, max: 4_102_444_800_000 }), (millis) => {
      assert.strictEqual(parseTimestamp(formatTimestamp(millis)), millis)
    }))
  })
})
