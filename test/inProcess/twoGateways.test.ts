/** Several gateways in one process, and one gateway that several parts of an app ask. */
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { Deadlines } from "../../src/config/clock/Deadlines.ts"
import { CurrentBufferedBytes } from "../../src/config/limits.ts"
import { mostAtWork, WorkLimit } from "../../src/http/WorkLimit.ts"
import {
  AdminCredentials,
  complete,
  Completion,
  ConfigStore,
  fixedUpstream,
  GatewayServices,
  gatewayServices,
  makeDriver,
  mountGateway,
  Reply,
  UpstreamEvent
} from "../../src/index.ts"

/** An upstream that says its name. */
const named = (name: string) =>
  makeDriver({
    complete: () =>
      Effect.succeed({
        id: name,
        events: Stream.make<Array<UpstreamEvent.UpstreamEvent>>(
          UpstreamEvent.UpstreamText(name),
          UpstreamEvent.UpstreamFinish("stop")
        )
      })
  })

const platform = Layer.mergeAll(NodeHttpClient.layerUndici, NodeServices.layer, HttpServer.layerServices)

const body = JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "hello" }] })

const post = (handler: (request: Request) => Promise<Response>, path: string, key: string) =>
  Effect.promise(() =>
    handler(
      new Request(`http://app.test${path}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}` },
        body
      })
    )
  )

const mounted = <E>(app: Layer.Layer<never, E, HttpRouter.HttpRouter | HttpRouter.Request<"Error", unknown>>) =>
  Effect.acquireRelease(
    Effect.sync(() => HttpRouter.toWebHandler(app, { disableLogger: true })),
    ({ dispose }) => Effect.promise(dispose)
  )

describe("two gateways in one app", () => {
  it.effect("each have their own upstream and keys", () =>
    Effect.gen(function*() {
      const gateway = (name: string) =>
        mountGateway(`/${name}`).pipe(
          Layer.provide(gatewayServices(fixedUpstream(named(name)))),
          Layer.provide(ConfigStore.layerMemory({ keys: [`key-${name}`], auth: { direct_tokens: false } }))
        )
      const { handler } = yield* mounted(Layer.merge(gateway("one"), gateway("two")).pipe(Layer.provide(platform)))
      for (const [name, other] of [["one", "two"], ["two", "one"]] as const) {
        const response = yield* post(handler, `/${name}`, `key-${name}`)
        assert.include(yield* Effect.promise(() => response.text()), `"content":"${name}"`)
        assert.strictEqual((yield* post(handler, `/${name}`, `key-${other}`)).status, 401)
      }
    }))

  it.effect("with the configured upstream are separate by Layer.fresh", () =>
    Effect.gen(function*() {
      const gateway = (name: string) =>
        mountGateway(`/${name}`).pipe(
          Layer.provide(Layer.fresh(GatewayServices)),
          Layer.provide(ConfigStore.layerMemory({ keys: [`key-${name}`], auth: { direct_tokens: false } }))
        )
      const { handler } = yield* mounted(Layer.merge(gateway("one"), gateway("two")).pipe(Layer.provide(platform)))
      for (const [name, other] of [["one", "two"], ["two", "one"]] as const) {
        assert.strictEqual((yield* post(handler, `/${name}`, `key-${name}`)).status, 200)
        assert.strictEqual((yield* post(handler, `/${name}`, `key-${other}`)).status, 401)
      }
    }))
})

describe("two gateways in one app count", () => {
  const adminKey = "the-embedder's-admin-key"

  /** Two gateways of one app: their services, and a way to ask each. */
  const two = Effect.gen(function*() {
    const contexts = yield* Effect.forEach(["one", "two"], (name) =>
      Layer.build(
        gatewayServices(fixedUpstream(named(name))).pipe(
          Layer.provideMerge(ConfigStore.layerMemory({ keys: ["key"] }, { adminKey })),
          Layer.provideMerge(platform)
        )
      ))
    const [one, other] = [contexts[0]!, contexts[1]!]
    const { handler } = yield* mounted(
      Layer.merge(
        Layer.provide(mountGateway("/one"), Layer.succeedContext(one)),
        Layer.provide(mountGateway("/two"), Layer.succeedContext(other))
      )
    )
    return { one, other, handler }
  })

  const requestsCounted = (handler: (request: Request) => Promise<Response>, path: string) =>
    Effect.promise(async () => {
      const headers = { authorization: `Bearer ${adminKey}` }
      const metrics = await handler(new Request(`http://app.test${path}/metrics`, { headers }))
      const line = /^gateway_requests_total\{[^}]*style="chat"[^}]*\} (\d+)$/m.exec(await metrics.text())
      return line === null ? 0 : Number(line[1])
    })

  it.effect("their requests separately", () =>
    Effect.gen(function*() {
      const { handler } = yield* two
      for (const path of ["/one", "/one", "/two"]) {
        const response = yield* post(handler, path, "key")
        yield* Effect.promise(() => response.text())
      }
      assert.strictEqual(yield* requestsCounted(handler, "/one"), 2)
      assert.strictEqual(yield* requestsCounted(handler, "/two"), 1)
    }))

  it.effect("the bytes that they hold separately", () =>
    Effect.gen(function*() {
      const { handler, one } = yield* two
      Context.get(one, CurrentBufferedBytes).used = Number.MAX_SAFE_INTEGER
      assert.strictEqual((yield* post(handler, "/one", "key")).status, 429)
      assert.strictEqual((yield* post(handler, "/two", "key")).status, 200)
    }))

  it.effect("their work limits separately", () =>
    Effect.gen(function*() {
      const { one, other } = yield* two
      const { inTurn } = Context.get(one, WorkLimit)
      for (let i = 0; i < mostAtWork; i++) {
        yield* Effect.forkChild(inTurn(Effect.never), { startImmediately: true })
      }
      const waits = yield* Effect.forkChild(inTurn(Effect.void), { startImmediately: true })
      yield* Context.get(other, WorkLimit).inTurn(Effect.void)
      assert.isUndefined(waits.pollUnsafe())
    }))
})

describe("a mounted gateway's admin API", () => {
  const app = (options?: { readonly adminKey: string }) => {
    const config = ConfigStore.layerMemory({ keys: ["key"] }, options)
    return Effect.gen(function*() {
      const services = yield* Layer.build(config)
      const { handler } = yield* mounted(
        mountGateway("/ai").pipe(
          Layer.provide(Layer.fresh(GatewayServices)),
          Layer.provide(Layer.succeedContext(services)),
          Layer.provide(platform)
        )
      )
      const status = (key: string) =>
        Effect.map(
          Effect.promise(() =>
            handler(new Request("http://app.test/ai/admin/keys", { headers: { authorization: `Bearer ${key}` } }))
          ),
          (response) => response.status
        )
      return { status, credentials: Context.get(services, AdminCredentials) }
    })
  }

  it.effect("accepts only the key that the app sets", () =>
    Effect.gen(function*() {
      const { status } = yield* app({ adminKey: "the-embedder's-admin-key" })
      assert.strictEqual(yield* status("the-embedder's-admin-key"), 200)
      assert.strictEqual(yield* status("key"), 401)
    }))

  it.effect("accepts a generated key when the app sets no key", () =>
    Effect.gen(function*() {
      const { credentials, status } = yield* app()
      assert.strictEqual(yield* status(Redacted.value(credentials.adminKey)), 200)
    }))
})

describe("one gateway in one app", () => {
  class First extends Context.Service<First, Completion["Service"]>()("test/First") {}
  class Second extends Context.Service<Second, Completion["Service"]>()("test/Second") {}

  it.effect("is built once for all its uses, with its upstream built from the app's services", () =>
    Effect.gen(function*() {
      const built: Array<string> = []
      class Pool extends Context.Service<Pool, string>()("test/Pool") {}
      const PoolLive = Layer.effect(Pool, Effect.sync(() => (built.push("pool"), "said of the pool")))
      const Mine = Layer.unwrap(
        Effect.map(Pool, (name) => (built.push("upstream"), fixedUpstream(named(name))))
      ).pipe(Layer.provide(PoolLive))
      const Services = gatewayServices(Mine)
      const config = ConfigStore.layerMemory()
      const context = yield* Layer.build(
        Layer.mergeAll(
          PoolLive,
          Layer.provide(Layer.effect(First, Completion), Services),
          Layer.provide(Layer.effect(Second, Completion), Services),
          Services
        ).pipe(Layer.provideMerge(config), Layer.provide(platform))
      )
      assert.strictEqual(Context.get(context, First), Context.get(context, Second))
      assert.deepEqual(built, ["pool", "upstream"])
      const reply = yield* Effect.provideContext(complete({ model: "upstream-chat", prompt: "Hello" }), context)
      assert.strictEqual(Reply.replyText(reply), "said of the pool")
    }))

  it.effect("has one list of deadlines, shared with its upstream", () =>
    Effect.gen(function*() {
      let ofUpstream: Deadlines["Service"] | undefined
      const Mine = Layer.unwrap(
        Effect.map(Deadlines, (deadlines) => {
          ofUpstream = deadlines
          return fixedUpstream(named("mine"))
        })
      )
      const context = yield* Layer.build(
        gatewayServices(Mine).pipe(Layer.provide(ConfigStore.layerMemory()), Layer.provide(platform))
      )
      assert.strictEqual(Context.get(context, Deadlines), ofUpstream)
    }))
})
