import { assert, describe, it } from "@effect/vitest"
import { Clock, Context, Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { ConfigStore } from "../../../src/config/ConfigStore.ts"
import { setField } from "../../../src/config/rawConfig.ts"
import { jsonSize } from "../../../src/styles/responses/store/jsonSize.ts"
import { layerResponses, layerResponsesOf } from "../../../src/styles/responses/store/memoryResponses.ts"
import { ResponsesStore } from "../../../src/styles/responses/store/ResponsesStore.ts"
import { runs } from "../../support/effort.ts"
import { makeWallClock } from "../../support/wallClock.ts"

const roomy = { count: 10_000, bytes: 128 * 1024 * 1024 }

/** A store with its own configuration, for the length of the test. */
const start = (limits = roomy, ttl?: number) =>
  Effect.map(
    Layer.build(
      layerResponsesOf(limits).pipe(
        Layer.provideMerge(
          ConfigStore.layerJson(ttl === undefined ? {} : { responses: { store_ttl_seconds: ttl } }, { adminKey: "a" })
        )
      )
    ),
    (context) => ({ store: Context.get(context, ResponsesStore), config: Context.get(context, ConfigStore) })
  )

const response = (id: string, body = `{"id":"${id}"}`) => ({ id, body, items: [{ role: "user", content: "hello" }] })

describe("ResponsesStore", () => {
  it.effect("returns a response to its owner only", () =>
    Effect.gen(function*() {
      const { store } = yield* start()
      yield* store.put("alice", response("resp_1"))
      assert.deepStrictEqual(yield* store.get("alice", "resp_1"), response("resp_1"))
      assert.isUndefined(yield* store.get("bob", "resp_1"))
      assert.isUndefined(yield* store.get("alice", "resp_2"))
    }))

  it.effect("says by which account a server has a response too", () =>
    Effect.gen(function*() {
      const { store } = yield* start()
      const heldBy = { upstream: "gpu", account: "0123456789ab", organization: undefined }
      const open = store.openUnsafe("alice", response("resp_1"))
      open.finalizeUnsafe("{}", heldBy)
      assert.deepStrictEqual(yield* store.get("alice", "resp_1"), { ...response("resp_1", "{}"), heldBy })
      yield* store.put("alice", { ...response("resp_2"), heldBy })
      assert.deepStrictEqual(yield* store.get("alice", "resp_2"), { ...response("resp_2"), heldBy })
    }))

  it.effect("lets go of a response when its time-to-live is over", () =>
    Effect.gen(function*() {
      const { store } = yield* start()
      yield* store.put("alice", response("resp_1"))
      yield* TestClock.adjust("899 seconds")
      assert.isDefined(yield* store.get("alice", "resp_1"))
      yield* TestClock.adjust("1 seconds")
      assert.isUndefined(yield* store.get("alice", "resp_1"))
    }))

  it.effect("neither drops nor prolongs anything when the wall clock jumps", () =>
    Effect.gen(function*() {
      const clock = makeWallClock(yield* Clock.Clock)
      const { store } = yield* Effect.provideService(start(), Clock.Clock, clock)
      for (const offset of [3_600_000, -3_600_000]) {
        clock.offset = 0
        yield* store.put("alice", response("resp_1"))
        clock.offset = offset
        yield* TestClock.adjust("899 seconds")
        assert.isDefined(yield* store.get("alice", "resp_1"))
        yield* TestClock.adjust("1 seconds")
        assert.isUndefined(yield* store.get("alice", "resp_1"))
      }
    }))

  it.effect("counts the time-to-live from the last change", () =>
    Effect.gen(function*() {
      const { store } = yield* start(roomy, 60)
      const open = store.openUnsafe("alice", response("resp_1", "in progress"))
      yield* TestClock.adjust("50 seconds")
      open.finalizeUnsafe("completed")
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual((yield* store.get("alice", "resp_1"))?.body, "completed")
      yield* TestClock.adjust("1 seconds")
      assert.isUndefined(yield* store.get("alice", "resp_1"))
    }))

  it.effect("keeps a response that is in progress, however long it takes", () =>
    Effect.gen(function*() {
      const { store } = yield* start(roomy, 30)
      yield* store.put("alice", response("resp_before"))
      const open = store.openUnsafe("alice", response("resp_1", "in progress"))
      yield* store.put("alice", response("resp_after"))
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual((yield* store.get("alice", "resp_1"))?.body, "in progress")
      assert.strictEqual((yield* store.held).count, 1)
      open.finalizeUnsafe("completed")
      assert.strictEqual((yield* store.get("alice", "resp_1"))?.body, "completed")
    }))

  it.effect("follows a changed time-to-live immediately, for what already exists too", () =>
    Effect.gen(function*() {
      const { config, store } = yield* start()
      yield* store.put("alice", response("resp_1"))
      yield* TestClock.adjust("100 seconds")
      yield* config.update((raw) => Effect.succeed(setField(raw, ["responses", "store_ttl_seconds"], 90)))
      assert.isUndefined(yield* store.get("alice", "resp_1"))
    }))

  it.effect("lets go of what has expired without a request", () =>
    Effect.gen(function*() {
      const { store } = yield* start()
      yield* store.put("alice", response("resp_1"))
      yield* TestClock.adjust("931 seconds")
      assert.deepStrictEqual(yield* store.held, { count: 0, bytes: 0 })
    }))

  it.effect("does not bring back a response that was removed while it was in progress", () =>
    Effect.gen(function*() {
      const { store } = yield* start()
      const open = store.openUnsafe("alice", response("resp_1"))
      assert.isFalse(yield* store.remove("bob", "resp_1"))
      assert.isTrue(yield* store.remove("alice", "resp_1"))
      assert.isFalse(yield* store.remove("alice", "resp_1"))
      open.finalizeUnsafe("completed")
      assert.isUndefined(yield* store.get("alice", "resp_1"))
      assert.deepStrictEqual(yield* store.held, { count: 0, bytes: 0 })
    }))

  it.effect("drops the oldest when there are too many", () =>
    Effect.gen(function*() {
      const { store } = yield* start({ ...roomy, count: 2 })
      yield* store.put("alice", response("resp_1"))
      const open = store.openUnsafe("alice", response("resp_2"))
      yield* store.put("alice", response("resp_3"))
      open.finalizeUnsafe("completed")
      yield* store.put("alice", response("resp_4"))
      assert.isUndefined(yield* store.get("alice", "resp_1"))
      assert.isDefined(yield* store.get("alice", "resp_2"))
      assert.isUndefined(yield* store.get("alice", "resp_3"))
      assert.isDefined(yield* store.get("alice", "resp_4"))
    }))

  it.effect("drops the oldest when they take too much memory, and what is too large by itself", () =>
    Effect.gen(function*() {
      const { store } = yield* start({ ...roomy, bytes: 10_000 })
      yield* store.put("alice", response("resp_1", "x".repeat(2000)))
      yield* store.put("alice", response("resp_2", "x".repeat(2000)))
      yield* store.put("alice", response("resp_3", "x".repeat(2000)))
      assert.isUndefined(yield* store.get("alice", "resp_1"))
      assert.isDefined(yield* store.get("alice", "resp_2"))
      yield* store.put("alice", response("resp_4", "x".repeat(5001)))
      assert.deepStrictEqual(yield* store.held, { count: 0, bytes: 0 })
    }))

  it.effect("at the count limit removes the oldest response of the largest owner only", () =>
    Effect.gen(function*() {
      const { store } = yield* start({ ...roomy, count: 6 })
      yield* store.put("alice", response("alice_1"))
      yield* store.put("alice", response("alice_2"))
      for (let i = 0; i < 100; i++) yield* store.put("mallory", response(`mallory_${i}`))
      assert.isDefined(yield* store.get("alice", "alice_1"))
      assert.isDefined(yield* store.get("alice", "alice_2"))
      assert.isUndefined(yield* store.get("mallory", "mallory_95"))
      assert.isDefined(yield* store.get("mallory", "mallory_96"))
      assert.strictEqual((yield* store.held).count, 6)
    }))

  it.effect("at the byte limit removes the oldest response of the owner with the most bytes", () =>
    Effect.gen(function*() {
      const { store } = yield* start({ ...roomy, bytes: 20_000 })
      for (let i = 0; i < 10; i++) yield* store.put("alice", response(`alice_${i}`, "x"))
      yield* store.put("mallory", response("mallory_1", "x".repeat(4000)))
      yield* store.put("mallory", response("mallory_2", "x".repeat(6000)))
      for (let i = 0; i < 10; i++) assert.isDefined(yield* store.get("alice", `alice_${i}`))
      assert.isUndefined(yield* store.get("mallory", "mallory_1"))
      assert.isDefined(yield* store.get("mallory", "mallory_2"))
    }))

  it.effect("takes those of one share for one owner when room is made, and for no one else's reader", () =>
    Effect.gen(function*() {
      const { store } = yield* start({ ...roomy, count: 4 })
      yield* store.put("alice", response("alice_1"))
      yield* store.put("alice", response("alice_2"))
      for (let i = 0; i < 50; i++) yield* store.put(`token ${i}`, response(`token_${i}`), "direct")
      assert.isDefined(yield* store.get("alice", "alice_1"))
      assert.isDefined(yield* store.get("token 49", "token_49"))
      assert.isUndefined(yield* store.get("token 48", "token_49"))
      assert.isUndefined(yield* store.get("direct", "token_49"))
    }))

  it.effect("has the bounds that are configured, from the next response on", () =>
    Effect.gen(function*() {
      const layer = layerResponses.pipe(
        Layer.provideMerge(ConfigStore.layerJson({ limits: { stored_responses: 10 } }, { adminKey: "a" }))
      )
      const context = yield* Layer.build(layer)
      const store = Context.get(context, ResponsesStore)
      for (let i = 0; i < 20; i++) yield* store.put("alice", response(`resp_${i}`))
      assert.strictEqual((yield* store.held).count, 10)
      yield* Context.get(context, ConfigStore).update((raw) =>
        Effect.succeed({ ...raw, limits: { stored_responses: 12 } })
      )
      for (let i = 20; i < 40; i++) yield* store.put("alice", response(`resp_${i}`))
      assert.strictEqual((yield* store.held).count, 12)
    }))

  it.effect("stores a response that was dropped for room while it was in progress once it is final", () =>
    Effect.gen(function*() {
      const { store } = yield* start({ ...roomy, count: 1 })
      const open = store.openUnsafe("alice", response("resp_1"))
      yield* store.put("alice", response("resp_2"))
      assert.isUndefined(yield* store.get("alice", "resp_1"))
      open.finalizeUnsafe("completed")
      assert.strictEqual((yield* store.get("alice", "resp_1"))?.body, "completed")
    }))

  it.effect("never holds more than its bounds, and counts to nothing when all is gone", () =>
    Effect.gen(function*() {
      const limits = { count: 8, bytes: 6000 }
      const { store } = yield* start(limits)
      const steps = fc.sample(
        fc.record({
          act: fc.constantFrom("put", "open", "settle", "remove", "wait"),
          id: fc.nat({ max: 15 }),
          size: fc.nat({ max: 1200 })
        }),
        { numRuns: runs(3000) }
      )
      const open = new Map<number, (body: string) => void>()
      let made = 0
      for (const { act, id, size } of steps) {
        const owner = `owner ${id % 3}`
        if (act === "put") yield* store.put(owner, response(`resp_${made++}`, "x".repeat(size)))
        if (act === "open") {
          open.set(id, store.openUnsafe(owner, response(`resp_${made++}`, "x".repeat(size))).finalizeUnsafe)
        }
        if (act === "settle") {
          open.get(id)?.("y".repeat(size))
          open.delete(id)
        }
        if (act === "remove") yield* store.remove(owner, `resp_${made - 1 - id}`)
        if (act === "wait") yield* TestClock.adjust(size * 100)
        const held = yield* store.held
        assert.isAtMost(held.count, limits.count)
        assert.isAtMost(held.bytes, limits.bytes)
      }
      for (const settle of open.values()) settle("done")
      yield* TestClock.adjust("20 minutes")
      assert.deepStrictEqual(yield* store.held, { count: 0, bytes: 0 })
    }))
})

describe("jsonSize", () => {
  it("is at least what the strings of a value take, and grows with it", () => {
    fc.assert(fc.property(fc.jsonValue(), fc.string(), (value, text) => {
      const whole = { value: JSON.parse(JSON.stringify(value)), text }
      assert.isAtLeast(jsonSize(whole), 2 * text.length)
      assert.isAbove(jsonSize(whole), jsonSize(whole.value))
    }))
  })
})
