/**
 * The transport over undici's `dispatch`, with keep-alive and a connection timeout.
 *
 * The generic client costs a response object, a scope, a `Readable`, a channel and one or two fibers for each call; here the
 * dispatcher's handler reports to the exchange directly.
 */
import { type Agent, buildConnector, type Dispatcher, errors } from "@effect/platform-node/Undici"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Socket } from "node:net"
import { Readable } from "node:stream"
import { Deadlines } from "../../config/clock/Deadlines.ts"
import { CurrentShutdown } from "../../config/clock/Shutdown.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { Exchange, type ExchangeRequest, Exchanges, isArriving, leavingBody, type Transport } from "../Exchange.ts"
import { traced } from "./traced.ts"

/** Bytes of the head of a response. */
const longestHead = 64 * 1024

/** Opens connections within the milliseconds that `limit` returns, TLS handshake included. */
const connectWithin = (deadlines: Deadlines["Service"], limit: () => number): buildConnector.connector => {
  const connector = buildConnector({ timeout: 0 })
  return (options, callback) => {
    // The connector returns the socket, which its type omits.
    const socket: unknown = connector(options, (...result) => {
      deadline.cancel()
      callback(...result)
    })
    const deadline = deadlines.add(deadlines.now() + limit(), () => {
      if (socket instanceof Socket) socket.destroy(new errors.ConnectTimeoutError())
    })
  }
}

/** Reports the events of undici's handler to an exchange. */
class Handler implements Dispatcher.DispatchHandler, Transport {
  private readonly exchange: Exchange
  private controller: Dispatcher.DispatchController | undefined = undefined

  constructor(exchange: Exchange) {
    this.exchange = exchange
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.controller = controller
    this.exchange.attach(this)
  }

  pause(): void {
    this.controller?.pause()
  }

  resume(): void {
    this.controller?.resume()
  }

  abort(): void {
    this.controller?.abort(left)
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: Exchange["headers"]): void {
    // They are unused, and would keep the bytes that they were parsed from alive until the reply ends.
    controller.rawHeaders = null
    if (status >= 200) this.exchange.began(status, headers)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.exchange.received(chunk)
  }

  onResponseEnd(): void {
    this.exchange.ended()
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.exchange.broke(error)
  }
}

const left = new Error("The gateway needs no more of the reply")

const dispatch = (
  dispatcher: Dispatcher,
  { body, headers, method, origin, path }: ExchangeRequest,
  exchange: Exchange
) => {
  try {
    const sent = body === undefined ? null : isArriving(body) ? Readable.from(leavingBody(body, exchange)) : body
    dispatcher.dispatch(
      { origin, path, method, headers, body: sent, headersTimeout: 0, bodyTimeout: 0 },
      new Handler(exchange)
    )
  } catch (error) {
    exchange.broke(error)
  }
}

/** A change of `upstream.timeouts.connect` applies to connections opened afterwards. */
export const layerUndici: Layer.Layer<Exchanges, never, ConfigStore | Deadlines> = Layer.effect(
  Exchanges,
  Effect.gen(function*() {
    const store = yield* ConfigStore
    const deadlines = yield* Deadlines
    const shutdown = yield* CurrentShutdown
    const connect = connectWithin(deadlines, () => store.now().upstream.timeouts.connect * 1000)
    const agent = yield* Effect.acquireRelease(
      Effect.map(
        Effect.promise(() => import("@effect/platform-node/Undici")),
        (undici): Agent => new undici.Agent({ connect, maxHeaderSize: longestHead })
      ),
      (agent) => Effect.promise(() => agent.destroy())
    )
    return Exchanges.of({
      start: traced(() => store.now().telemetry.propagate, (request, options) => {
        const exchange = new Exchange(options, deadlines, request.origin, shutdown)
        dispatch(agent, request, exchange)
        return exchange
      })
    })
  })
)
