import { assert, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { createServer as createHttpServer } from "node:http"
import { type AddressInfo, createServer, type Server } from "node:net"
import { Deadlines } from "../../../src/config/clock/Deadlines.ts"
import { ConfigStore } from "../../../src/config/ConfigStore.ts"
import { Exchanges } from "../../../src/upstream/Exchange.ts"
import { makeSessionDriver } from "../../../src/upstream/session/driver.ts"
import { layerUndici } from "../../../src/upstream/transports/undici.ts"

/** A server that takes connections and never says a word, so that a TLS handshake with it does not end. */
const silentServer = Effect.acquireRelease(
  Effect.callback<{ readonly server: Server; readonly asked: Promise<void>; readonly left: Promise<void> }>(
    (resume) => {
      const asked = Promise.withResolvers<void>()
      const left = Promise.withResolvers<void>()
      const server = createServer((socket) => {
        socket.on("data", () => asked.resolve()).on("error", () => {}).on("close", () => left.resolve())
      })
      server.listen(0, "127.0.0.1", () => resume(Effect.succeed({ server, asked: asked.promise, left: left.promise })))
    }
  ),
  ({ server }) => Effect.sync(() => server.close())
)

const limits = { firstByte: 100_000, silence: 100_000 }

it.effect("a connection that does not open in time is a time limit, not a broken connection", () =>
  Effect.gen(function*() {
    const { asked, left, server } = yield* silentServer
    const address = server.address()
    if (address === null || typeof address === "string") return yield* Effect.die("no port")
    const baseUrl = `https://127.0.0.1:${address.port}`
    const driver = makeSessionDriver(yield* Exchanges, { baseUrl, furtherModels: [], limits })
    const verifying = yield* Effect.forkChild(Effect.flip(driver.verify("t")))
    // The handshake has begun.
    yield* Effect.promise(() => asked)
    yield* TestClock.adjust("10 seconds")
    assert.isUndefined(verifying.pollUnsafe())
    yield* TestClock.adjust("10 seconds")
    assert.strictEqual((yield* Fiber.join(verifying)).kind, "timeout")
    yield* Effect.promise(() => left)
  }).pipe(
    Effect.provide(
      Layer.provide(layerUndici, [Deadlines.layer, ConfigStore.layerJson({ upstream: { timeouts: { connect: 15 } } })])
    )
  ))

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
            limits
          })
          return yield* Effect.match(driver.capabilities.sessions.create("t"), {
            onSuccess: () => "read",
            onFailure: ({ kind }) => kind
          })
        }).pipe(Effect.provide(Layer.provide(layerUndici, [Deadlines.layer, ConfigStore.layerJson({})])))
      )
    }
    assert.deepStrictEqual(results, ["read", "transport"])
  }))
