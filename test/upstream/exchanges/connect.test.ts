import { assert, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { createServer as createHttpServer } from "node:http"
import { type AddressInfo, createServer, type Server } from "node:net"
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
    const config = ConfigStore.layerJson({ upstream: { timeouts: { connect: 0.05 } } })
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

/** A server whose every answer has a header of this length and an accepted envelope. */
const headedServer = (length: number) =>
  Effect.acquireRelease(
    Effect.callback<string>((resume) => {
      const server = createHttpServer({ maxHeaderSize: 1024 * 1024 }, (_, response) => {
        response.writeHead(200, { "content-type": "application/json", "x-pad": "y".repeat(length) })
        response.end(JSON.stringify({ code: 0, data: { biz_code: 0, biz_data: { id: "s" } } }))
      })
      server.listen(0, "127.0.0.1", () => {
        servers.set(length, server)
        resume(Effect.succeed(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
      })
    }),
    () =>
      Effect.sync(() => {
        servers.get(length)?.closeAllConnections()
        servers.get(length)?.close()
      })
  )
const servers = new Map<number, ReturnType<typeof createHttpServer>>()

it.live("a head of up to 64 KiB is read, a longer one is a failure of the connection", () =>
  Effect.gen(function*() {
    const results: Array<string> = []
    for (const length of [60 * 1024, 66 * 1024]) {
      const baseUrl = yield* headedServer(length)
      results.push(
        yield* Effect.gen(function*() {
          const driver = makeSessionDriver(yield* Exchanges, {
            baseUrl,
            furtherModels: [],
            limits: { firstByte: 10_000, silence: 10_000 }
          })
          return yield* Effect.match(driver.createSession("t"), {
            onSuccess: () => "read",
            onFailure: ({ kind }) => kind
          })
        }).pipe(Effect.provide(Layer.provide(layerUndici, ConfigStore.layerJson({}))))
      )
    }
    assert.deepStrictEqual(results, ["read", "transport"])
  }))
