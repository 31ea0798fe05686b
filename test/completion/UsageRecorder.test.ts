import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { makeRequestStats, type RequestStats } from "../../src/completion/RequestStats.ts"
import { UsageRecorder, usedBy } from "../../src/completion/UsageRecorder.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { monotonicMillis } from "../../src/domain/time.ts"
import { percentileNames, percentilesOf } from "../../src/usage/Times.ts"
import { costsOf } from "../../src/usage/UsageEntry.ts"
import { UsageStore } from "../../src/usage/UsageStore.ts"
import { hourLength } from "../../src/usage/windows.ts"
import { usageInMemory } from "../support/usage.ts"

const usage = {
  promptTokens: 3,
  cachedTokens: 0,
  completionTokens: 2,
  reasoningTokens: 0
}

const prices = {
  "default/upstream-chat": { input: 1_000_000, output: 10_000_000 },
  "gpu/other": { input: 2_000_000, per_request: 0.5 }
}

/** A request that was answered by `upstream-chat`, with changes. */
const answered = (changes: Partial<RequestStats> = {}) =>
  Object.assign(makeRequestStats("req_a", 0), {
    admittedAt: 1,
    status: 200,
    upstreamCalled: true,
    model: "upstream-chat",
    usage,
    ...changes
  })

const everything = { from: 0, to: hourLength, by: ["target"], only: {}, limit: 10 } as const

describe("the usage recorder", () => {
  it.effect("costs a request at the prices of the target that answered, when its usage is settled", () =>
    Effect.gen(function*() {
      const { ended } = yield* UsageRecorder
      const store = yield* UsageStore
      const config = yield* ConfigStore
      const requests = [
        answered(),
        // Limits have asked for the cost before the prices change.
        answered(),
        answered({ target: { upstream: "gpu", model: "other" } }),
        answered({ target: { upstream: "gpu", model: "upstream-chat" } }),
        // Without an answer, and without a call of the upstream.
        answered({ status: 503, error: "upstream_error", usage: undefined }),
        answered({ status: 429, error: "rate_limit_exceeded", usage: undefined, upstreamCalled: false })
      ]
      ended(requests[0]!)
      assert.deepStrictEqual(usedBy(requests[1]!, { ...config.now(), now: 0 }), {
        counted: true,
        tokens: 5,
        cost: 23_000_000_000n
      })
      yield* config.update((raw) =>
        Effect.succeed({ ...raw, prices: { ...prices, "default/upstream-chat": { input: 9 } } })
      )
      for (const request of requests.slice(1)) ended(request)
      const { rows } = yield* store.query(everything)
      assert.deepStrictEqual(rows.map(({ sums, target }) => ({ target, ...costsOf(sums) })), [
        { target: "default/upstream-chat", cost: "46", unpriced_requests: 0 },
        { target: "gpu/other", cost: "6.5", unpriced_requests: 0 },
        { target: "gpu/upstream-chat", cost: "0", unpriced_requests: 1 }
      ])
    }).pipe(Effect.provide(usageInMemory.pipe(
      Layer.provideMerge(UsageStore.layerMemory),
      Layer.provideMerge(ConfigStore.layerJson({ prices }))
    ))))

  it.effect("stores the reply's tokens in the stats, and drops the machine that counted them", () =>
    Effect.gen(function*() {
      const { ended } = yield* UsageRecorder
      const stats = makeRequestStats("req_a", 0)
      stats.soFar = { usage: () => usage, estimated: () => false, promptReported: () => false, isBilled: false }
      ended(stats)
      assert.deepStrictEqual(stats.usage, usage)
      assert.isUndefined(stats.soFar)
    }).pipe(Effect.provide(Layer.provide(usageInMemory, ConfigStore.layerJson()))))

  it.effect("adds how long a request took to the history", () =>
    Effect.gen(function*() {
      const { ended } = yield* UsageRecorder
      const store = yield* UsageStore
      const clock = yield* Clock.Clock
      const stats = makeRequestStats("req_a", monotonicMillis(clock))
      stats.queued = 100
      yield* TestClock.adjust("400 millis")
      stats.firstEventAt = monotonicMillis(clock)
      yield* TestClock.adjust("1600 millis")
      ended(Object.assign(stats, { status: 200, usage: { ...usage, completionTokens: 80 } }))
      const { totals } = yield* store.query(everything)
      const exact = {
        first_event_p50_ms: 400,
        first_event_p95_ms: 400,
        duration_p95_ms: 2000,
        queue_p95_ms: 100,
        tokens_per_second_p50: 50
      }
      for (const name of percentileNames) {
        assert.closeTo(percentilesOf(totals.times)[name] ?? 0, exact[name], exact[name] * 0.05, name)
      }
    }).pipe(Effect.provide(usageInMemory.pipe(
      Layer.provideMerge(UsageStore.layerMemory),
      Layer.provideMerge(ConfigStore.layerJson())
    ))))

  it.effect("counts each request in the minute in which it ends", () =>
    Effect.gen(function*() {
      const { ended, minutes } = yield* UsageRecorder
      const clock = yield* Clock.Clock
      const newest = (count: number) => {
        const view = minutes.view(clock.currentTimeMillisUnsafe())
        return view.minutes.slice(-count).map(({ failed, first_event_p50_ms, ok, requests, tokens }) => ({
          failed,
          first_event_p50_ms,
          ok,
          requests,
          tokens
        }))
      }
      const nothing = { failed: 0, first_event_p50_ms: null, ok: 0, requests: 0, tokens: 0 }
      const begin = (id: string) => makeRequestStats(id, monotonicMillis(clock))
      const [answered, refused] = [begin("req_a"), begin("req_b")]
      refused.error = "invalid_request"
      refused.status = 400
      ended(refused)
      yield* TestClock.adjust("400 millis")
      answered.firstEventAt = monotonicMillis(clock)
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(newest(3), [{ ...nothing, failed: 1, requests: 1 }, nothing, nothing])
      answered.usage = usage
      answered.status = 200
      ended(answered)
      const [first, , last] = newest(3)
      assert.deepStrictEqual(first, { ...nothing, failed: 1, requests: 1 })
      assert.deepInclude(last, { ok: 1, requests: 1, tokens: 5 })
      assert.closeTo(last!.first_event_p50_ms!, 400, 20)
      const { errors } = minutes.view(clock.currentTimeMillisUnsafe())
      assert.deepStrictEqual(errors.map(({ code, count, last_request_id }) => [code, count, last_request_id]), [
        ["invalid_request", 1, "req_b"]
      ])
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(newest(60), Array.from({ length: 60 }, () => nothing))
      assert.deepStrictEqual(minutes.view(clock.currentTimeMillisUnsafe()).errors, [])
    }).pipe(Effect.provide(Layer.provide(usageInMemory, ConfigStore.layerJson()))))
})
