/**
 * Prices by their dates.
 */
import { assert, describe, it } from "@effect/vitest"
import { currentOf, nextOf } from "../../../src/web/pages/models/dated.ts"

const entry = [
  { from: "2027-01-01", input: 3 },
  { input: 1 },
  { from: "2026-06-01T12:00:00Z", input: 2 }
]

describe("prices by their dates", () => {
  it.each([
    ["2020-01-01", 1, 2],
    ["2026-06-01T11:59:59Z", 1, 2],
    ["2026-06-01T12:00:00Z", 2, 3],
    ["2027-01-01", 3, undefined]
  ])("at %s the one that has begun last counts, and the next one follows", (at, now, next) => {
    assert.strictEqual(currentOf(entry, Date.parse(at))?.input, now)
    assert.strictEqual(nextOf(entry, Date.parse(at))?.input, next)
  })

  it("none counts before the first", () => {
    assert.isUndefined(currentOf([{ from: "2027-01-01", input: 3 }], Date.parse("2026-12-31")))
  })
})
