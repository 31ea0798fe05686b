/**
 * The HTTP client for calls to servers that are not upstreams: the hosting platform, the release server, a collector of telemetry.
 * They go through the environment's proxies. The client follows no redirect by itself, so that a token stays with the server that it is for.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Dispatcher } from "@effect/platform-node/Undici"
import * as Effect from "effect/Effect"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import { Deadlines } from "../../config/clock/Deadlines.ts"
import { proxyVariables } from "../../config/proxies.ts"
import type { ConnectionSettings } from "../ExchangeRequest.ts"
import { ProxyFailure } from "./connect.ts"
import { Dispatchers } from "./Dispatchers.ts"

const connection: ConnectionSettings = { accountProxy: undefined, proxy: undefined, tls: undefined, connect: 10_000 }

/** Sends each request by the environment's proxy for its address. */
class WebDispatcher extends Dispatcher {
  readonly #dispatchers: Dispatchers

  constructor(dispatchers: Dispatchers) {
    super()
    this.#dispatchers = dispatchers
  }

  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const route = this.#dispatchers.routeOf(connection, String(options.origin))
    if (route.chosen !== undefined && route.chosen.proxy === undefined) throw new ProxyFailure("UND_ERR_PRX_CONN")
    return this.#dispatchers.dispatch(route, options, handler)
  }
}

export const layerWebClient: Layer.Layer<HttpClient.HttpClient> = NodeHttpClient.layerUndiciNoDispatcher.pipe(
  Layer.provide(Layer.effect(
    NodeHttpClient.Dispatcher,
    Effect.gen(function*() {
      const deadlines = yield* Deadlines
      const environment = yield* proxyVariables
      const dispatchers = yield* Effect.acquireRelease(
        Effect.sync(() => new Dispatchers(deadlines, environment)),
        (dispatchers) => Effect.promise(() => dispatchers.destroy())
      )
      return new WebDispatcher(dispatchers)
    })
  )),
  Layer.provide(Deadlines.layer)
)
