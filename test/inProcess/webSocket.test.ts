/** WebSocket connections of a gateway in another app. */
import { NodeHttpClient, NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { ConfigStore, fixedUpstream, gatewayServices, makeDriver, mountGateway } from "../../src/index.ts"
import { startMounted } from "../hotPath/mounted.ts"
import { Client } from "../styles/responses/socket/client.ts"
import { refusal } from "../styles/responses/socket/stand.ts"
import { businessKey } from "../support/gateway.ts"

describe("a gateway that is mounted in another app", () => {
  it("opens connections below its path on the app's own server, and refuses others", async () => {
    const { stop, url } = await startMounted({}, Effect.runSync(Effect.tracer), Effect.runSync(Clock.Clock))
    try {
      const client = await Client.open(url)
      client.create({ input: "The word is plover.", store: false })
      const { id } = await client.response()
      client.create({ input: "Which word?", store: false, previous_response_id: id })
      assert.include((await client.response()).output_text, "plover")
      client.close()
      assert.strictEqual((await client.end()).code, 1005)
      const { error, status } = await refusal(url, { headers: {} })
      assert.deepStrictEqual([status, error["code"]], [401, "authentication_failed"])
    } finally {
      await stop()
    }
  })

  it("as a web handler answers 426, because it has no socket", async () => {
    const upstream = fixedUpstream(makeDriver({ complete: () => Effect.never }))
    const app = mountGateway("/").pipe(
      Layer.provide(gatewayServices(upstream)),
      Layer.provide(ConfigStore.layerMemory({ keys: [businessKey] })),
      Layer.provide([NodeHttpClient.layerUndici, NodeServices.layer, HttpServer.layerServices])
    )
    const { dispose, handler } = HttpRouter.toWebHandler(app, { disableLogger: true })
    const headers = {
      authorization: `Bearer ${businessKey}`,
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="
    }
    const response = await handler(new Request("http://app.test/v1/responses", { headers }))
    const { error } = await response.json() as { readonly error: { readonly code: string } }
    assert.deepStrictEqual([response.status, error.code], [426, "upgrade_required"])
    await dispose()
  })
})
