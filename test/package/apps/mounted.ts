/** The whole gateway below a path of another app's router, beside the app's own routes. */
import { NodeHttpClient, NodeHttpServer, NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { ConfigStore, GatewayServices, mountGateway } from "model-gateway"
import assert from "node:assert/strict"
import { createServer } from "node:http"

const Gateway = mountGateway("/ai/gateway").pipe(
  Layer.provide(GatewayServices),
  Layer.provide(ConfigStore.layerMemory({ keys: ["key"] }, { adminKey: "admin" })),
  Layer.provide([NodeHttpClient.layerUndici, NodeServices.layer])
)

const App = Layer.merge(Gateway, HttpRouter.add("GET", "/", HttpServerResponse.text("the app's own page")))

const Served = HttpRouter.serve(App, { disableLogger: true, disableListenLog: true }).pipe(
  Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" }))
)

const call = async (path: string, init?: RequestInit) => {
  const response = await fetch(path, init)
  const text = await response.text()
  return { response, text, body: text.startsWith("{") ? JSON.parse(text) as Record<string, unknown> : {} }
}

const program = Effect.gen(function*() {
  const { address } = yield* HttpServer.HttpServer
  const base = HttpServer.formatAddress(address)
  const gateway = `${base}/ai/gateway`
  yield* Effect.promise(async () => {
    const own = await call(`${base}/`)
    assert.equal(own.text, "the app's own page")
    assert.equal(own.response.headers.get("x-request-id"), null)
    assert.equal(own.response.headers.get("access-control-allow-origin"), null)
    assert.equal((await call(`${base}/elsewhere`)).text, "")

    assert.deepEqual((await call(`${gateway}/healthz`)).body, { status: "ok" })
    assert.equal((await fetch(`${gateway}/readyz`, { method: "HEAD" })).status, 200)

    const headers = { authorization: "Bearer key" }
    const chat = JSON.stringify({ model: "upstream-chat", messages: [{ role: "user", content: "Is it mounted?" }] })
    const completion = await call(`${gateway}/v1/chat/completions`, { method: "POST", headers, body: chat })
    assert.match(completion.text, /“Is it mounted\?”/)

    const preflight = await fetch(`${gateway}/v1/chat/completions`, { method: "OPTIONS" })
    assert.equal(preflight.headers.get("access-control-allow-origin"), "*")

    const missing = await call(`${gateway}/v1beta/nothing`, { method: "POST" })
    assert.deepEqual([missing.response.status, Object.keys(missing.body["error"] as object)], [
      404,
      ["code", "message", "status"]
    ])
    const lost = await call(`${gateway}/admin/nothing`)
    assert.deepEqual([lost.response.status, Object.keys(lost.body)], [404, ["detail"]])
    const wrong = await call(`${gateway}/v1/chat/completions`)
    assert.deepEqual([wrong.response.status, wrong.response.headers.get("allow")], [405, "POST"])

    const document = await call(`${gateway}/openapi.json`)
    assert.deepEqual(document.body["servers"], [{ url: "." }])
    assert.match((await call(`${gateway}/docs`)).text, /"servers":\[\{"url":"\."\}\]/)

    const admin = { authorization: "Bearer admin" }
    const selfTest = await call(`${gateway}/admin/test`, { method: "POST", headers: admin })
    assert.equal(selfTest.body["success"], true)
    const longKey = await call(`${gateway}/admin/keys/${"k".repeat(300)}`, { method: "DELETE", headers: admin })
    assert.equal(longKey.response.status, 404)
    assert.match(longKey.text, /detail/)
  })
})

await Effect.runPromise(Effect.provide(program, Served))
