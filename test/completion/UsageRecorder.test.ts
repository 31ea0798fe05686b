import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { TestClock } from "effect/testing"
import { makeRequestStats } from "../../src/completion/RequestStats.ts"
import { UsageRecorder } from "../../src/completion/UsageRecorder.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { monotonicMillis } from "../../src/domain/time.ts"
import { usageInMemory } from "../support/usage.ts"

const usage = {
  promptTokens: 3,
  cachedTokens: 0,
  completionTokens: 2,
  reasoningTokens: 0
}

describe("the usage recorder", () => {
  it.effect("stores the reply's tokens in the stats, and drops the machine that counted them", () =>
    Effect.gen(function*() {
      const { ended } = yield* UsageRecorder
      const stats = makeRequestStats("req_a", 0)
      stats.soFar = { usage: () => usage, estimated: () => false }
      ended(stats)
      assert.deepStrictEqual(stats.usage, usage)
      assert.isUndefined(stats.soFar)
    }).pipe(Effect.provide(Layer.provide(usageInMemory, ConfigStore.layerJson()))))

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
