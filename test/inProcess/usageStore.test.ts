/** A place for usage of the embedder's own. */
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Latch, Layer, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { sha256Hex } from "../../src/config/json.ts"
import { keyId } from "../../src/domain/identity.ts"
import {
  ConfigStore,
  fixedUpstream,
  gatewayServices,
  makeDriver,
  mountGateway,
  UpstreamEvent,
  UsageStore,
  type UsageStoreShape
} from "../../src/index.ts"

const driver = makeDriver({
  complete: () =>
    Effect.succeed({
      id: "one",
      events: Stream.make<Array<UpstreamEvent.UpstreamEvent>>(
        UpstreamEvent.UpstreamText("Hello"),
        UpstreamEvent.UpstreamFinish("stop")
      )
    })
})

const platform = Layer.mergeAll(NodeHttpClient.layerUndici, NodeServices.layer, HttpServer.layerServices)

const gateway = (usage: Layer.Layer<UsageStore>, requests: number) =>
  Effect.acquireRelease(
    Effect.sync(() =>
      HttpRouter.toWebHandler(
        mountGateway("/ai").pipe(
          Layer.provide(gatewayServices(fixedUpstream(driver))),
          Layer.provide(usage),
          Layer.provide(ConfigStore.layerMemory({
            keys: ["key"],
            key_records: { [keyId("key", sha256Hex)]: { limits: [{ window: "day", requests }] } }
          })),
          Layer.provide(platform)
        ),
        { disableLogger: true }
      )
    ),
    ({ dispose }) => Effect.promise(dispose)
  )

const ask = (handler: (request: Request) => Promise<Response>) =>
  Effect.promise(async () => {
    const response = await handler(
      new Request("http://app.test/ai/v1/chat/completions", {
        method: "POST",
        headers: { authorization: "Bearer key" },
        body: JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Hello" }] })
      })
    )
    await response.text()
    return response.status
  })

/** The store in memory, changed. */
const changed = (change: (store: UsageStoreShape) => UsageStoreShape) =>
  Layer.provide(Layer.effect(UsageStore, Effect.map(UsageStore, change)), UsageStore.layerMemory)

describe("an app's usage store that answers slowly", () => {
  it.effect("delays the first requests of a key, which are counted together", () =>
    Effect.gen(function*() {
      const answer = yield* Latch.make()
      let asked = 0
      const slow = changed((store) => ({
        ...store,
        counters: (key, now) =>
          Effect.andThen(Effect.andThen(Effect.sync(() => asked++), answer.await), store.counters(key, now))
      }))
      const { handler } = yield* gateway(slow, 2)
      const first = yield* Effect.forkChild(Effect.all([1, 2, 3].map(() => ask(handler)), { concurrency: 3 }))
      while (asked === 0) yield* Effect.promise(() => new Promise(setImmediate))
      yield* answer.open
      assert.sameMembers([...(yield* Fiber.join(first))], [200, 200, 429])
      assert.strictEqual(yield* ask(handler), 429)
      assert.strictEqual(asked, 1)
    }))

  it.effect("determines the usage of a key", () =>
    Effect.gen(function*() {
      const full = changed((store) => ({
        ...store,
        counters: (key, now) =>
          Effect.map(Effect.andThen(Effect.yieldNow, store.counters(key, now)), ({ windows, ...rest }) => ({
            ...rest,
            windows: { ...windows, day: { requests: 2, tokens: 0 } }
          }))
      }))
      const { handler } = yield* gateway(full, 2)
      assert.strictEqual(yield* ask(handler), 429)
    }))
})
