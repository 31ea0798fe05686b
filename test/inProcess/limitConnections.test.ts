/** An app's own node server, kept within the gateway's limits. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { once } from "node:events"
import { createServer } from "node:http"
import { type AddressInfo, connect } from "node:net"
import { ConfigStore, limitConnections } from "../../src/index.ts"

describe("limitConnections", () => {
  it.live("keeps an app's own server within the configured limits", () =>
    Effect.gen(function*() {
      const server = yield* Effect.acquireRelease(
        Effect.sync(() => createServer((_, response) => response.end("ok"))),
        (server) =>
          Effect.sync(() => {
            server.closeAllConnections()
            server.close()
          })
      )
      const config = ConfigStore.layerMemory({ limits: { connections: 16 } })
      yield* Layer.build(limitConnections(server).pipe(Layer.provide(config), Layer.provide(NodeServices.layer)))
      yield* Effect.promise(async () => {
        server.listen(0, "127.0.0.1")
        await once(server, "listening")
        const { port } = server.address() as AddressInfo
        const open = () => connect(port, "127.0.0.1").on("error", () => {}).resume()
        const clients = Array.from({ length: 16 }, open)
        await Promise.all(clients.map((client) => once(client, "connect")))
        const refused = open()
        await once(refused, "close")
        assert.isFalse(clients.some(({ destroyed }) => destroyed))
        for (const client of clients) client.destroy()
      })
    }))
})
