/** The whole gateway as a web handler. */
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import { Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { ConfigStore, GatewayRoutes, GatewayServices, routerConfig } from "model-gateway"
import assert from "node:assert/strict"

const { dispose, handler } = HttpRouter.toWebHandler(
  GatewayRoutes.pipe(
    Layer.provide(GatewayServices),
    Layer.provide(ConfigStore.layerMemory({ keys: ["key"] })),
    Layer.provide([NodeHttpClient.layerUndici, NodeServices.layer, HttpServer.layerServices])
  ),
  { routerConfig, disableLogger: true }
)

const response = await handler(
  new Request("http://localhost/v1/messages", {
    method: "POST",
    headers: { "x-api-key": "key" },
    body: JSON.stringify({
      model: "upstream-chat",
      max_tokens: 100,
      stream: true,
      messages: [{ role: "user", content: "handled" }]
    })
  })
)
const text = await response.text()
await dispose()
assert.match(text, /event: message_start/)
assert.match(text, /“handled”/)
