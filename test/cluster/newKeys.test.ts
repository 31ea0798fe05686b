/**
 * A key that one node has just added and another has not received yet.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as TestClock from "effect/testing/TestClock"
import { Callers } from "../../src/accounts/Callers.ts"
import { CredentialThrottles } from "../../src/accounts/CredentialThrottles.ts"
import { Store } from "../../src/cluster/store/Store.ts"
import { StoreUnavailable } from "../../src/cluster/store/StoreShape.ts"
import { shareRuns } from "../../src/config/clock/cooperative.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import { askingPause } from "../../src/config/sharedConfig.ts"
import { withVariables } from "../config/support.ts"
import type { RedisServer } from "../support/redisServer.ts"
import { until } from "../support/until.ts"
import { deafStoreLayer, settledServer } from "./support.ts"

/** A node that receives no messages. `asked` records its commands to the store. */
const deafNode = Effect.fnUntraced(function*(server: RedisServer, id: string) {
  const asked: Array<string> = []
  let isLost = false
  /** Closed while the store's answers are held back. */
  const answers = yield* Latch.make(true)
  const deaf = Layer.effect(
    Store,
    Effect.map(Store, (store): Store["Service"] => ({
      ...store,
      send: (...command) =>
        Effect.suspend(() => {
          asked.push(command.join(" "))
          return isLost
            ? Effect.fail(new StoreUnavailable({ message: "lost" }))
            : Effect.tap(store.send(...command), () => answers.await)
        })
    }))
  ).pipe(Layer.provide(deafStoreLayer(server, id)))
  const context = yield* Layer.build(
    Callers.layer.pipe(
      Layer.provide(CredentialThrottles.layerNone),
      Layer.provideMerge(ConfigStore.layerShared),
      Layer.provide(deaf),
      Layer.provide(Environment.layer),
      Layer.provide(withVariables({ GATEWAY_CONFIG_JSON: JSON.stringify({ keys: ["first"] }) })),
      Layer.provide(NodeServices.layer)
    )
  )
  const callers = Context.get(context, Callers)
  const configuration = Context.get(context, ConfigStore)
  return {
    questions: () => asked.filter((command) => command === "HGET gw:{main}:config revision").length,
    lose: () => {
      isLost = true
    },
    answers,
    setKeys: (...keys: ReadonlyArray<string>) => configuration.update((raw) => Effect.succeed({ ...raw, keys })),
    identify: (bearer: string) =>
      Effect.match(callers.identify(bearer, undefined, "192.0.2.1"), {
        onFailure: (error) => error.code,
        onSuccess: (caller) => caller._tag
      })
  }
})

const two = Effect.fnUntraced(function*() {
  const server = yield* settledServer
  return { one: yield* deafNode(server, "one"), other: yield* deafNode(server, "other") }
})

describe("a bearer that is unknown to a node", () => {
  it.live("is a key if another node has added it, otherwise an upstream token", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two()
      for (const key of ["second", "third", "fourth"]) {
        // Reads the configuration just before the key is added.
        assert.strictEqual(yield* other.identify(`no-${key}`), "Direct")
        yield* one.setKeys("first", key)
        assert.strictEqual(yield* other.identify(key), "Managed")
      }
      assert.strictEqual(yield* other.identify("a-token"), "Direct")
    }))

  it.live("shares one query to the store with concurrent requests", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two()
      yield* one.setKeys("first", "second")
      const bearers = ["second", ...Array.from({ length: 50 }, (_, i) => `token-${i}`)]
      const found = yield* Effect.forEach(bearers, other.identify, { concurrency: "unbounded" })
      assert.deepStrictEqual(found, bearers.map((bearer) => bearer === "second" ? "Managed" : "Direct"))
      assert.strictEqual(other.questions(), 1)
      const before = other.questions()
      for (const bearer of ["first", ...bearers]) yield* other.identify(bearer)
      assert.strictEqual(other.questions(), before)
    }))

  it.live("waits for the answer of the store", () =>
    Effect.gen(function*() {
      const { other } = yield* two()
      yield* other.answers.close
      const fibers = yield* Effect.forEach(["a-token", "another"], (bearer) =>
        Effect.forkScoped(other.identify(bearer), { startImmediately: true }))
      yield* until(() =>
        other.questions() === 1
      )
      assert.strictEqual(yield* other.identify("first"), "Managed")
      assert.deepStrictEqual(fibers.map((fiber) => fiber.pollUnsafe()), [undefined, undefined])
      yield* other.answers.open
      assert.deepStrictEqual(yield* Effect.forEach(fibers, Fiber.join), ["Direct", "Direct"])
    }))

  it.live("is rejected with store_unavailable while the store is lost; a known key is accepted", () =>
    Effect.gen(function*() {
      const { other } = yield* two()
      other.lose()
      assert.strictEqual(yield* other.identify("a-token"), "store_unavailable")
      assert.strictEqual(yield* other.identify("first"), "Managed")
    }))
})

describe("queries for the newest configuration", () => {
  it.effect("are 100 ms apart at least", () =>
    Effect.gen(function*() {
      let runs = 0
      const ask = yield* shareRuns(Effect.sync(() => ++runs), askingPause)
      assert.strictEqual(yield* ask, 1)
      const fibers = yield* Effect.forEach([1, 2], () => Effect.forkChild(ask, { startImmediately: true }))
      yield* TestClock.adjust(99)
      assert.strictEqual(runs, 1)
      yield* TestClock.adjust(1)
      assert.deepStrictEqual(yield* Effect.forEach(fibers, Fiber.join), [2, 2])
    }))
})
