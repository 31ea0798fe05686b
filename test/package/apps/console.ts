/** The console in another app, beside the gateway below the same path. */
import { NodeHttpClient, NodeHttpServer, NodeServices } from "@effect/platform-node"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { ConfigStore, GatewayServices, mountGateway } from "model-gateway"
import { mountConsole } from "model-gateway/console"
import assert from "node:assert/strict"
import { createServer } from "node:http"

const Gateway = Layer.merge(mountGateway("/ai"), mountConsole("/ai")).pipe(
  Layer.provide(GatewayServices),
  Layer.provide(ConfigStore.layerMemory({ keys: ["my-key"] })),
  Layer.provide([NodeHttpClient.layerUndici, NodeServices.layer])
)

const Server = HttpRouter.serve(Gateway, { disableLogger: true, disableListenLog: true }).pipe(
  Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" }))
)

await Effect.gen(function*() {
  const { address } = yield* HttpServer.HttpServer
  const base = `${HttpServer.formatAddress(address)}/ai`
  const page = yield* Effect.promise(() => fetch(`${base}/console`))
  assert.equal(page.url, `${base}/console/`)
  const html = yield* Effect.promise(() => page.text())
  const script = /src="([^"]+)"/.exec(html)?.[1]
  assert.ok(script)
  const loaded = yield* Effect.promise(() => fetch(new URL(script, page.url)))
  assert.equal(loaded.status, 200)
  const health = yield* Effect.promise(() => fetch(`${base}/healthz`))
  assert.equal(health.status, 200)
}).pipe(Effect.provide(Server), Effect.runPromise)
