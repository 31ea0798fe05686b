/** The requests of the last hour by minutes, and what nodes send each other about them. */
import { assert, describe, it } from "@effect/vitest"
import * as Schema from "effect/Schema"
import * as fc from "fast-check"
import type { Fault } from "../../src/domain/fault.ts"
import { RequestMinutes, WrittenMinutes } from "../../src/usage/RequestMinutes.ts"
import { runs } from "../support/effort.ts"
import { entry, start } from "./support.ts"

const minute = 60_000

interface Ended {
  readonly outcome: "succeeded" | "failed" | "left"
  readonly took: number | undefined
  readonly error: string | undefined
  readonly fault?: Fault
  readonly key?: string
  readonly target?: string
}

const failedWith = (error: string, fault?: Fault, key = "k"): Ended => ({
  outcome: "failed",
  took: undefined,
  error,
  key,
  ...fault === undefined ? {} : { fault }
})

let ids = 0
const count = (
  minutes: RequestMinutes,
  { error, fault, key = "k", outcome, took, target }: Ended,
  now: number
): string => {
  const id = `req_${++ids}`
  const answerer = target === undefined ? undefined : { upstream: target.split("/")[0]!, target }
  minutes.add(
    entry({ outcome, error, key, answerer, cost: 1_500_000_000n }),
    { id, startedAt: 5, firstEventAt: took === undefined ? undefined : 5 + took },
    now,
    fault
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
      fc.record({
        outcome: fc.constant("failed" as const),
        took: fc.constant(undefined),
        error: fc.constantFrom("upstream_error", "rate_limit_exceeded", "invalid_request"),
        fault: fc.constantFrom("caller" as const, "gateway" as const),
        key: fc.constantFrom("a", "b", "c"),
        target: fc.constantFrom("x/m", "y/m")
      })
    )
  }),
  { maxLength: 80 }
)

/** The counts of a node as another one reads them. */
const read = Schema.decodeUnknownSync(Schema.fromJsonString(WrittenMinutes))
const sent = (minutes: RequestMinutes, now: number) => read(JSON.stringify(minutes.written(now)))

/** The most frequent value with its count; of equally frequent ones the first by name. */
const mostOf = (values: ReadonlyArray<string | undefined>) => {
  const [most] = [...Map.groupBy(values, (value) => value)]
    .map(([value, of]) => ({ value, count: of.length }))
    .sort((a, b) => b.count - a.count || (a.value! < b.value! ? -1 : 1))
  return most ?? null
}

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
  it("are the last 60 and the sum of the 60 before with exact counts and percentiles within 5 percent, and two nodes add up to one that counts all", () => {
    fc.assert(
      fc.property(acts, (steps) => {
        let now = start
        const all = new RequestMinutes(0)
        const nodes = [new RequestMinutes(0), new RequestMinutes(0)]
        const requests = steps.map(({ ended, node, pass }): Ended & { readonly at: number; readonly id: string } => {
          now += pass
          count(nodes[node]!, ended, now)
          return { ...ended, at: now, id: count(all, ended, now) }
        })
        const { before, errors, minutes, ...hour } = all.view(now)
        assert.deepStrictEqual(
          minutes.map(({ at }) => at),
          Array.from({ length: 60 }, (_, i) => (Math.floor(now / minute) - 59 + i) * minute)
        )
        // The hour before is one sum.
        const spans = [
          ...minutes.map((shown) => [shown, shown.at, shown.at + minute] as const),
          [
            before,
            minutes[0]!.at - 60 * minute,
            minutes[0]!.at
          ] as const
        ]
        for (const [shown, from, to] of spans) {
          const its = requests.filter(({ at }) => at >= from && at < to)
          const ended = (outcome: string) => its.filter((each) => each.outcome === outcome).length
          assert.deepInclude(shown, {
            requests: its.length,
            ok: ended("succeeded"),
            failed: ended("failed"),
            left: ended("left"),
            refused: its.filter(({ fault }) => fault === "caller").length,
            tokens: 15 * its.length,
            cost: String(1.5 * its.length)
          })
          assertTimes(its, shown)
        }
        const recent = requests.filter(({ at }) => at >= minutes[0]!.at)
        assertTimes(recent, hour)
        for (const { code, count, fault, key, last_at, last_request_id, upstream } of errors) {
          const its = recent.filter((each) => each.error === code && each.fault === fault)
          assert.deepStrictEqual([count, last_at, last_request_id], [its.length, its.at(-1)!.at, its.at(-1)!.id])
          assert.deepStrictEqual(key, mostOf(its.map((each) => each.key)))
          assert.deepStrictEqual(upstream, mostOf(its.map(({ target }) => target?.split("/")[0])))
        }
        assert.strictEqual(
          sumOf(hour.answered.map(({ requests }) => requests)),
          recent.filter(({ target }) => target !== undefined).length
        )
        assert.strictEqual(sumOf(errors.map((each) => each.count)), sumOf(minutes.map(({ failed }) => failed)))
        const sum = nodes[0]!.view(now, [sent(nodes[1]!, now)])
        assert.deepStrictEqual(sum.minutes, minutes)
        assert.deepStrictEqual(sum.before, before)
        assert.deepStrictEqual(
          sum.errors.map(({ last_request_id: _, ...each }) => each),
          errors.map(({ last_request_id: _, ...each }) => each)
        )
        assert.deepStrictEqual(sum.answered, hour.answered)
      }),
      { numRuns: runs(100) }
    )
  })

  it("say since when the oldest node counts", () => {
    const [first, second] = [new RequestMinutes(start), new RequestMinutes(start + minute)]
    assert.strictEqual(second.view(start + minute).since, start + minute)
    assert.strictEqual(second.view(start + minute, [sent(first, start + minute)]).since, start)
  })

  it("start anew with the clock: minutes that it leaves ahead or two hours behind are zero", () => {
    const minutes = new RequestMinutes(0)
    const requestsAt = (now: number) => minutes.view(now).minutes.map(({ requests }) => requests)
    const only = (last: number) => [...new Array<number>(59).fill(0), last]
    count(minutes, failedWith("upstream_error"), start + 60 * minute)
    assert.deepStrictEqual(requestsAt(start), only(0))
    assert.deepStrictEqual(minutes.view(start).errors, [])
    // The same place of the ring, two hours earlier.
    count(minutes, failedWith("upstream_error"), start - 60 * minute)
    assert.deepStrictEqual(requestsAt(start - 60 * minute), only(1))
    assert.deepStrictEqual(requestsAt(start + 60 * minute), only(0))
    assert.strictEqual(minutes.view(start - 60 * minute).errors[0]?.count, 1)
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
  it("tell the errors of a code apart by who is at fault, and count what callers did as refused", () => {
    const minutes = new RequestMinutes(0)
    // The queue refuses with the code of a key's limits.
    for (const fault of ["caller", "gateway", "caller"] as const) {
      count(minutes, failedWith("rate_limit_exceeded", fault), start)
    }
    const { errors, minutes: shown } = minutes.view(start)
    assert.deepStrictEqual(errors.map(({ code, count, fault }) => [code, fault, count]), [
      ["rate_limit_exceeded", "caller", 2],
      ["rate_limit_exceeded", "gateway", 1]
    ])
    assert.deepInclude(shown.at(-1), { failed: 3, refused: 2 })
  })

  it("name the key of most errors however many keys there are: never too many of its errors, and at most two ninths too few", () => {
    const keys = fc.array(
      fc.oneof({ weight: 3, arbitrary: fc.constant("most") }, {
        weight: 4,
        arbitrary: fc.integer({ min: 0, max: 1_000 }).map((n) => `key ${n}`)
      }),
      { minLength: 40, maxLength: 300 }
    )
    fc.assert(
      fc.property(keys, (all) => {
        const nodes = [new RequestMinutes(0), new RequestMinutes(0)]
        all.forEach((key, i) =>
          count(nodes[i % 2]!, failedWith("upstream_error", "upstream", key), start + (i % 50) * minute)
        )
        const now = start + 50 * minute
        const key = nodes[0]!.view(now, [sent(nodes[1]!, now)]).errors[0]!.key!
        const ofKey = (value: string) => all.filter((each) => each === value).length
        assert.isAtMost(key.count, ofKey(key.value))
        assert.isAtLeast(key.count, mostOf(all)!.count - all.length * 2 / 9)
        const written = nodes[1]!.written(now).errors[0]!.nouns.key
        assert.isAtMost(written.length, 8)
      }),
      { numRuns: runs(100) }
    )
  })

  it("name the target that answered each model, the 200 pairs with the most requests", () => {
    const minutes = new RequestMinutes(0)
    const answeredBy = (target: string): Ended => ({ outcome: "succeeded", took: 5, error: undefined, target })
    for (const target of ["a/m", "b/m", "a/m"]) count(minutes, answeredBy(target), start)
    assert.deepStrictEqual(minutes.view(start).answered, [
      { model: "upstream-chat", target: "a/m", requests: 2 },
      { model: "upstream-chat", target: "b/m", requests: 1 }
    ])
    for (let i = 0; i < 300; i++) count(minutes, answeredBy(`a/${i}`), start + minute)
    assert.isAtMost(minutes.view(start + minute).answered.length, 200)
    assert.deepStrictEqual(minutes.view(start + 61 * minute).answered, [])
  })
})
