/** Requests that arrive while the socket listens and the routes are not built yet. */
import { assert, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { subscribe, unsubscribe } from "node:diagnostics_channel"
import { NodeServer } from "../../src/server/nodeServer.ts"

/** The channel on which Node announces each request that it has received. */
const received = "http.server.request.start"

it.live("are answered once the gateway serves them", () =>
  Effect.scoped(Effect.gen(function*() {
    const { server } = NodeServer({ port: 0, host: "127.0.0.1", descriptor: undefined })
    const context = yield* Layer.build(server)
    const { address } = Context.get(context, HttpServer.HttpServer)
    assert(address._tag === "InetAddressV4")
    const arrived = Promise.withResolvers<void>()
    const count = () => arrived.resolve()
    subscribe(received, count)
    const reply = fetch(`http://127.0.0.1:${address.port}/readyz`)
    yield* Effect.promise(() => arrived.promise)
    unsubscribe(received, count)
    yield* HttpServer.serveEffect(Effect.succeed(HttpServerResponse.text("ready"))).pipe(
      Effect.provideContext(context)
    )
    assert.strictEqual(yield* Effect.promise(async () => (await reply).text()), "ready")
  })))
