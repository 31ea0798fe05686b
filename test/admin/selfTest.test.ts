/** The service's test of itself: on a socket, as a web handler, and below another router's prefix. */
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Stream } from "effect"
import { HttpClient, HttpClientRequest, HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { SelfClient } from "../../src/admin/SelfClient.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { GatewayRoutes, GatewayServices } from "../../src/server/Gateway.ts"
import { SelfClientLive } from "../../src/server/selfClient.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "../support/gateway.ts"
import { caller } from "./support.ts"

const withGateway = async (config: RawConfig, use: (call: ReturnType<typeof caller>) => Promise<void>) => {
  const gateway: RunningGateway = await startGateway(config)
  await use(caller(() => gateway)).finally(() => gateway.stop())
}

const contentOf = (response: unknown) =>
  (response as { readonly choices: ReadonlyArray<{ readonly message: { readonly content: string } }> })
    .choices[0]?.message.content

describe("the self-test", () => {
  it("sends a greeting to the default model with the first key, and returns the caller's reply", () =>
    withGateway({ keys: ["first", "second"] }, async (call) => {
      for (const body of [undefined, {}, { model: null, message: "", api_key: "" }]) {
        const { json } = await call("POST", "/admin/test", { body })
        assert.deepInclude(json, { success: true, status_code: 200 })
        assert.include(contentOf(json["response"]), "你好")
        assert.deepInclude(json["response"], { object: "chat.completion", model: "upstream-chat" })
      }
    }))

  it("accepts a model, a message and a key", () =>
    withGateway({ keys: ["first", "second"] }, async (call) => {
      const { json } = await call("POST", "/admin/test", {
        body: { model: "upstream-reasoner", message: "!say well done", api_key: "second" }
      })
      assert.strictEqual(contentOf(json["response"]), "well done")
      assert.deepInclude(json["response"], { model: "upstream-reasoner" })
    }))

  it("returns errors as callers get them", () =>
    withGateway({ keys: ["first"], auth: { direct_tokens: false } }, async (call) => {
      const { json, status } = await call("POST", "/admin/test", { body: { api_key: "nobody's" } })
      assert.strictEqual(status, 200)
      assert.deepInclude(json, { success: false, status_code: 401 })
      assert.nestedPropertyVal(json, "response.error.code", "authentication_failed")
      const model = await call("POST", "/admin/test", { body: { model: "nothing" } })
      assert.deepInclude(model.json, { success: false, status_code: 400 })
    }))

  it("rejects a key that a header cannot carry, given or configured", () =>
    withGateway({ keys: ["ключ"] }, async (call) => {
      for (const path of ["/admin/test", "/admin/dev/raw-samples/capture"]) {
        for (const body of [{}, { api_key: "日本" }, { api_key: "a\nb" }, { api_key: "a\u0000b" }]) {
          const { detail, status } = await call("POST", path, { body })
          assert.strictEqual(status, 400, detail)
          assert.strictEqual(detail, "api_key has characters that no header can carry")
        }
      }
    }))

  it("is rejected without a key", () =>
    withGateway({ keys: ["only"] }, async (call) => {
      await call("DELETE", "/admin/keys/only")
      const { detail, status } = await call("POST", "/admin/test")
      assert.strictEqual(status, 400)
      assert.include(detail, "api_key")
    }))
})

const services = GatewayServices.pipe(
  Layer.provideMerge(ConfigStore.layerJson({ keys: [businessKey] }, { adminKey })),
  Layer.provideMerge(NodeHttpClient.layerUndici),
  Layer.provideMerge(NodeServices.layer)
)

const selfTestOn = async (handler: (request: Request) => Promise<Response>, path: string) => {
  const response = await handler(
    new Request(`http://embedder.example${path}`, { method: "POST", headers: { authorization: `Bearer ${adminKey}` } })
  )
  assert.deepInclude(await response.json(), { success: true, status_code: 200 })
}

describe("the self-test of an embedded gateway", () => {
  it("works without a socket", async () => {
    const { dispose, handler } = HttpRouter.toWebHandler(
      GatewayRoutes.pipe(Layer.provide(services), Layer.provide(HttpServer.layerServices)),
      { disableLogger: true }
    )
    await selfTestOn(handler, "/admin/test").finally(dispose)
  })

  it("works below another router's prefix", async () => {
    const mounted = Layer.effect(
      HttpRouter.HttpRouter,
      Effect.map(HttpRouter.HttpRouter, (router) => router.prefixed("/tools/:team/gateway"))
    )
    const { dispose, handler } = HttpRouter.toWebHandler(
      GatewayRoutes.pipe(
        Layer.provide(mounted),
        Layer.provide(services),
        Layer.provide(HttpServer.layerServices)
      ),
      { disableLogger: true }
    )
    await selfTestOn(handler, "/tools/red/gateway/admin/test").finally(dispose)
  })
})

describe("the self-test's in-process HTTP client", () => {
  const routes = (stopped: Deferred.Deferred<void>) =>
    HttpRouter.addAll([
      HttpRouter.route(
        "GET",
        "/stream",
        Effect.gen(function*() {
          yield* Effect.addFinalizer(() => Deferred.succeed(stopped, undefined))
          return HttpServerResponse.stream(
            Stream.concat(Stream.make(new TextEncoder().encode("one")), Stream.never)
          )
        })
      ),
      HttpRouter.route("GET", "/never", Effect.ensuring(Effect.never, Deferred.succeed(stopped, undefined)))
    ])

  const build = Effect.fnUntraced(function*() {
    const stopped = yield* Deferred.make<void>()
    const context = yield* Layer.build(
      SelfClientLive.pipe(Layer.provideMerge(routes(stopped)), Layer.provide(HttpRouter.layer))
    )
    return { client: yield* Effect.provide(SelfClient, context), stopped }
  })

  it.effect("returns the first chunk of a running stream, and ends the request when the stream is released", () =>
    Effect.gen(function*() {
      const { client, stopped } = yield* build()
      const response = yield* client.get("/stream")
      const first = yield* Stream.runHead(response.stream)
      assert.strictEqual(new TextDecoder().decode(first._tag === "Some" ? first.value : undefined), "one")
      yield* Deferred.await(stopped)
    }))

  it.effect("ends an interrupted request", () =>
    Effect.gen(function*() {
      const { client, stopped } = yield* build()
      const waiting = yield* Effect.forkChild(client.execute(HttpClientRequest.get("/never")))
      yield* Effect.yieldNow
      yield* Fiber.interrupt(waiting)
      yield* Deferred.await(stopped)
    }))

  it.effect("fails with the status of an error response, like any HTTP client", () =>
    Effect.gen(function*() {
      const { client } = yield* build()
      const missing = yield* Effect.flip(HttpClient.filterStatusOk(client).get("/nothing"))
      assert.strictEqual(missing.response?.status, 404)
    }))
})
