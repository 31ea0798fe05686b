/** The requests of the last hour by minutes, and what nodes send each other about them. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { RequestMinutes, type WrittenMinutes } from "../../src/usage/RequestMinutes.ts"
import { runs } from "../support/effort.ts"
import { entry, start } from "./support.ts"

const minute = 60_000

interface Ended {
  readonly outcome: "succeeded" | "failed" | "left"
  readonly took: number | undefined
  readonly error: string | undefined
}

const failedWith = (error: string): Ended => ({ outcome: "failed", took: undefined, error })

let ids = 0
const count = (minutes: RequestMinutes, { error, outcome, took }: Ended, now: number): string => {
  const id = `req_${++ids}`
  minutes.add(
    entry({ outcome, error }),
    { id, startedAt: 5, firstEventAt: took === undefined ? undefined : 5 + took },
    now
  )
  return id
}

/** A request that ends at one of two nodes, some time after the one before it. */
const acts = fc.array(
  fc.record({
    pass: fc.oneof(
      { weight: 8, arbitrary: fc.integer({ min: 0, max: 2 * minute }) },
      { weight: 1, arbitrary: fc.constant(61 * minute) }
    ),
    node: fc.constantFrom(0, 1),
    ended: fc.oneof(
      fc.record({
        outcome: fc.constantFrom("succeeded" as const, "left" as const),
        took: fc.option(fc.oneof(fc.integer({ min: 0, max: 600_000 }), fc.integer({ min: 0, max: 50 })), {
          nil: undefined
        }),
        error: fc.constant(undefined)
      }),
      fc.constantFrom("upstream_error", "authentication_failed", "invalid_request").map(failedWith)
    )
  }),
  { maxLength: 80 }
)

const sent = (minutes: RequestMinutes, now: number) =>
  JSON.parse(JSON.stringify(minutes.written(now))) as WrittenMinutes

const sumOf = (numbers: ReadonlyArray<number>) => numbers.reduce((sum, each) => sum + each, 0)

/** Asserts the percentiles of these requests. */
const assertTimes = (
  requests: ReadonlyArray<{ readonly took?: number | undefined }>,
  shown: { readonly first_event_p50_ms: number | null; readonly first_event_p95_ms: number | null }
): void => {
  const took = requests.flatMap((each) => each.took ?? []).sort((a, b) => a - b)
  for (const [share, value] of [[0.5, shown.first_event_p50_ms], [0.95, shown.first_event_p95_ms]] as const) {
    const exact = took[Math.max(0, Math.ceil(share * took.length) - 1)]
    if (exact === undefined) assert.isNull(value)
    else assert.isAtMost(Math.abs(value! - exact), Math.max(1, exact * 0.05), `${value} instead of ${exact}`)
  }
}

describe("the minutes of requests", () => {
  it("are the last 60 with exact counts and percentiles within 5 percent, and two nodes add up to one that counts all", () => {
    fc.assert(
      fc.property(acts, (steps) => {
        let now = start
        const all = new RequestMinutes(0)
        const nodes = [new RequestMinutes(0), new RequestMinutes(0)]
        const requests = steps.map(({ ended, node, pass }) => {
          now += pass
          count(nodes[node]!, ended, now)
          return { ...ended, at: now, id: count(all, ended, now) }
        })
        const { errors, minutes, ...hour } = all.view(now)
        assert.deepStrictEqual(
          minutes.map(({ at }) => at),
          Array.from({ length: 60 }, (_, i) => (Math.floor(now / minute) - 59 + i) * minute)
        )
        for (const shown of minutes) {
          const its = requests.filter(({ at }) => at >= shown.at && at < shown.at + minute)
          const ended = (outcome: string) => its.filter((each) => each.outcome === outcome).length
          assert.deepInclude(shown, {
            requests: its.length,
            ok: ended("succeeded"),
            failed: ended("failed"),
            left: ended("left"),
            tokens: 15 * its.length
          })
          assertTimes(its, shown)
        }
        const recent = requests.filter(({ at }) => at >= minutes[0]!.at)
        assertTimes(recent, hour)
        for (const { code, count, last_at, last_request_id } of errors) {
          const its = recent.filter(({ error }) => error === code)
          assert.deepStrictEqual([count, last_at, last_request_id], [its.length, its.at(-1)!.at, its.at(-1)!.id])
        }
        assert.strictEqual(sumOf(errors.map((each) => each.count)), sumOf(minutes.map(({ failed }) => failed)))
        const sum = nodes[0]!.view(now, [sent(nodes[1]!, now)])
        assert.deepStrictEqual(sum.minutes, minutes)
        assert.deepStrictEqual(
          sum.errors.map(({ code, count, last_at }) => [code, count, last_at]),
          errors.map(({ code, count, last_at }) => [code, count, last_at])
        )
      }),
      { numRuns: runs(100) }
    )
  })

  it("say since when the oldest node counts; nodes of before count for longer than anybody knows", () => {
    const [first, second] = [new RequestMinutes(start), new RequestMinutes(start + minute)]
    assert.strictEqual(second.view(start + minute).since, start + minute)
    assert.strictEqual(second.view(start + minute, [sent(first, start + minute)]).since, start)
    assert.strictEqual(second.view(start + minute, [{ minutes: [], errors: [] }]).since, 0)
  })

  it("start anew with the clock: minutes that it leaves ahead or an hour behind are zero", () => {
    const minutes = new RequestMinutes(0)
    const requestsAt = (now: number) => minutes.view(now).minutes.map(({ requests }) => requests)
    const only = (last: number) => [...new Array<number>(59).fill(0), last]
    count(minutes, failedWith("upstream_error"), start + 30 * minute)
    assert.deepStrictEqual(requestsAt(start), only(0))
    assert.deepStrictEqual(minutes.view(start).errors, [])
    // The same place of the ring, an hour earlier.
    count(minutes, failedWith("upstream_error"), start - 30 * minute)
    assert.deepStrictEqual(requestsAt(start - 30 * minute), only(1))
    assert.deepStrictEqual(requestsAt(start + 30 * minute), only(0))
    assert.strictEqual(minutes.view(start - 30 * minute).errors[0]?.count, 1)
  })

  it("name the 20 most frequent codes of errors, and count the rest as other", () => {
    const minutes = new RequestMinutes(0)
    for (let i = 0; i < 30; i++) {
      for (let times = 0; times <= i % 20; times++) count(minutes, failedWith(`code_${i}`), start)
    }
    const { errors } = minutes.view(start)
    assert.lengthOf(errors, 21)
    assert.deepInclude(errors[0], { code: "code_19", count: 20 })
    assert.deepInclude(errors[20], { code: "other", count: 55, last_request_id: `req_${ids}` })
    const both = minutes.view(start, [sent(minutes, start)]).errors
    assert.deepStrictEqual(both.map(({ count }) => count), errors.map(({ count }) => 2 * count))
    // A code that has been quiet for an hour gives up its place.
    count(minutes, failedWith("code_29"), start + 60 * minute)
    assert.deepInclude(minutes.view(start + 60 * minute).errors[0], { code: "code_29", count: 1 })
    assert.lengthOf(minutes.view(start + 60 * minute).errors, 1)
  })
})
