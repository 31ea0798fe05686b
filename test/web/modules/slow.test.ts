/**
 * Since when requests are slow, from the hours of a day.
 */
import { assert, describe, it } from "@effect/vitest"
import { slownessOf } from "../../../src/web/pages/nouns/slow.ts"

const start = Date.parse("2026-11-21T10:00:00Z")
const hour = 3_600_000

/** An hour of ten requests, each of which waits, gets its first event, and streams for so many milliseconds. */
const row = (index: number, [wait, first, stream]: readonly [number, number, number], p95?: number | null) => ({
  hour: new Date(start + index * hour).toISOString(),
  requests: 10,
  queue_ms: 10 * wait,
  upstream_ms: 10 * first,
  duration_ms: 10 * (wait + first + stream),
  duration_p95_ms: p95 === undefined ? wait + first + stream : p95
})

const usual = [10, 400, 590] as const
const day = [0, 1, 2, 3, 4, 5].map((index) => row(index, usual))

describe("slownessOf", () => {
  it("names the first slow hour, and what part of the time has grown most", () => {
    const slow = [row(6, [8000, 400, 600]), row(7, [7000, 500, 500])]
    assert.deepStrictEqual(slownessOf([...slow, ...day]), {
      since: start + 6 * hour,
      p95: 9000,
      usual: 1000,
      phase: "wait",
      share: 15_000 / 17_000
    })
    const phaseOf = (times: readonly [number, number, number]) => slownessOf([...day, row(6, times)])?.phase
    assert.strictEqual(phaseOf([10, 5000, 590]), "first")
    assert.strictEqual(phaseOf([10, 400, 9000]), "stream")
  })

  it("is nothing while the last hour is as fast as others, or no times are known", () => {
    assert.isUndefined(slownessOf(day))
    assert.isUndefined(slownessOf([]))
    assert.isUndefined(slownessOf([...day, row(6, [8000, 400, 600]), row(7, usual)]))
    // Twice a few milliseconds is still fast.
    assert.isUndefined(slownessOf([row(0, [0, 10, 10]), row(1, [0, 10, 10]), row(2, [0, 200, 10])]))
    assert.isUndefined(
      slownessOf([...day, row(6, [8000, 400, 600])].map((each) => ({ ...each, duration_p95_ms: null })))
    )
  })
})
