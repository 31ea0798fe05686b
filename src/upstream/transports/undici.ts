/**
 * The transport over undici's `dispatch`, with keep-alive, proxies and a connection timeout.
 *
 * The generic client costs a response object, a scope, a `Readable`, a channel and one or two fibers for each call; here the
 * dispatcher's handler reports to the exchange directly.
 */
import type { Dispatcher } from "@effect/platform-node/Undici"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import { Readable } from "node:stream"
import { Deadlines } from "../../config/clock/Deadlines.ts"
import { CurrentShutdown } from "../../config/clock/Shutdown.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { proxyVariables } from "../../config/proxies.ts"
import type { FailureCause } from "../../domain/FailureCause.ts"
import { Exchange, Exchanges, leavingBody, type Transport } from "../Exchange.ts"
import type { ConnectionSettings, ExchangeRequest } from "../ExchangeRequest.ts"
import { ProxyFailure } from "./connect.ts"
import { Dispatchers, type ResolvedRoute } from "./Dispatchers.ts"
import { traced } from "./traced.ts"

/** What a failure of the proxy adds to its cause. */
const proxyFacts = (error: unknown, { chosen }: ResolvedRoute): Pick<FailureCause, "proxy" | "status"> => {
  if (!(error instanceof ProxyFailure) || chosen === undefined) return {}
  const { reason, status } = error
  return {
    ...(status === undefined ? {} : { status }),
    proxy: {
      of: chosen.owner,
      address: chosen.proxy?.address ?? "",
      ...(reason === undefined ? {} : { code: reason })
    }
  }
}

/** Receives the cause of each failure of a proxy, which operators should see whatever becomes of the request. */
type ProxyFailed = (cause: FailureCause | undefined) => void

/** Reports the events of undici's handler to an exchange. */
class Handler implements Dispatcher.DispatchHandler, Transport {
  private readonly exchange: Exchange
  private readonly route: ResolvedRoute
  private readonly proxyFailed: ProxyFailed
  private controller: Dispatcher.DispatchController | undefined = undefined

  constructor(exchange: Exchange, route: ResolvedRoute, proxyFailed: ProxyFailed) {
    this.exchange = exchange
    this.route = route
    this.proxyFailed = proxyFailed
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
    if (status === 407 && this.route.forward !== undefined) {
      this.onResponseError(controller, new ProxyFailure("UND_ERR_PRX_AUTH", { status }))
      controller.abort(left)
    } else if (status >= 200) this.exchange.began(status, headers)
  }

  onResponseData(_: Dispatcher.DispatchController, chunk: Buffer): void {
    this.exchange.received(chunk)
  }

  onResponseEnd(): void {
    this.exchange.ended()
  }

  onResponseError(_: Dispatcher.DispatchController, error: Error): void {
    this.exchange.broke(error, proxyFacts(error, this.route))
    if (error instanceof ProxyFailure) this.proxyFailed(this.exchange.cause)
  }
}

const left = new Error("The gateway needs no more of the reply")

const dispatch = (
  dispatchers: Dispatchers,
  connection: ConnectionSettings,
  { body, headers, method, origin, path }: ExchangeRequest,
  exchange: Exchange,
  proxyFailed: ProxyFailed
) => {
  try {
    const route = dispatchers.routeOf(connection, origin)
    if (route.chosen !== undefined && route.chosen.proxy === undefined) {
      const failure = new ProxyFailure("UND_ERR_PRX_CONN", { reason: "ERR_INVALID_URL" })
      exchange.broke(failure, proxyFacts(failure, route))
      return proxyFailed(exchange.cause)
    }
    const sent = body === undefined
      ? null
      : Stream.isStream(body)
      ? Readable.from(Stream.toAsyncIterable(leavingBody(body, exchange)))
      : body
    dispatchers.dispatch(
      route,
      { path, method, headers, body: sent, headersTimeout: 0, bodyTimeout: 0 },
      new Handler(exchange, route, proxyFailed)
    )
  } catch (error) {
    exchange.broke(error)
  }
}

/** A change of a `timeouts.connect` applies to connections opened afterwards. */
export const layerUndici: Layer.Layer<Exchanges, never, ConfigStore | Deadlines> = Layer.effect(
  Exchanges,
  Effect.gen(function*() {
    const store = yield* ConfigStore
    const deadlines = yield* Deadlines
    const shutdown = yield* CurrentShutdown
    const environment = yield* proxyVariables
    const dispatchers = yield* Effect.acquireRelease(
      Effect.sync(() => new Dispatchers(deadlines, environment)),
      (dispatchers) => Effect.promise(() => dispatchers.destroy())
    )
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const proxyFailed: ProxyFailed = (cause) => {
      run(Effect.annotateLogs(Effect.logWarning("The proxy of an upstream failed"), { cause }))
    }
    let usual: ConnectionSettings = { accountProxy: undefined, proxy: undefined, tls: undefined, connect: 0 }
    /** The way of an app's own driver, which has the connection limit of the first upstream. */
    const usualConnection = (): ConnectionSettings => {
      const [first] = store.now().upstreams.values()
      const connect = (first?.timeouts.connect ?? 10) * 1000
      if (usual.connect !== connect) usual = { ...usual, connect }
      return usual
    }
    return Exchanges.of({
      secrets: [],
      start: traced(() => store.now().telemetry.propagate, (request, options) => {
        const exchange = new Exchange(options, deadlines, request.origin, shutdown)
        dispatch(dispatchers, request.connection ?? usualConnection(), request, exchange, proxyFailed)
        return exchange
      })
    })
  })
)
