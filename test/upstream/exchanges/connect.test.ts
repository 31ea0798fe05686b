import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { createServer, type Server } from "node:net"
import { ConfigStore } from "../../../src/config/ConfigStore.ts"
import { Exchanges } from "../../../src/upstream/Exchange.ts"
import { layerUndici } from "../../../src/upstream/exchanges/undici.ts"
import { makeSessionDriver } from "../../../src/upstream/session/driver.ts"

/** A server that takes connections and never says a word, so that a TLS handshake with it does not end. */
const silentServer = Effect.acquireRelease(
  Effect.callback<Server>((resume) => {
    const server = createServer((socket) => socket.on("error", () => {}))
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) => Effect.sync(() => server.close())
)

it.live("a connection that does not open in time is a time limit, not a broken connection", () =>
  Effect.gen(function*() {
    const server = yield* silentServer
    const address = server.address()
    if (address === null || typeof address === "string") return yield* Effect.die("no port")
    const config = ConfigStore.layerMemory({ upstream: { timeouts: { connect: 0.05 } } })
    const failure = yield* Effect.gen(function*() {
      const driver = makeSessionDriver(yield* Exchanges, {
        baseUrl: `https://127.0.0.1:${address.port}`,
        furtherModels: [],
        limits: { firstByte: 10_000, silence: 10_000 }
      })
      return yield* Effect.flip(driver.verify("t"))
    }).pipe(Effect.provide(Layer.provide(layerUndici, config)))
    assert.strictEqual(failure.kind, "timeout")
  }))
