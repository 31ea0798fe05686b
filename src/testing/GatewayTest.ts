/**
 * The whole gateway with the reference upstream, for tests. All parts are the product's own, and no request leaves the
 * process.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServer from "effect/http/HttpServer"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as Scope from "effect/Scope"
import { CurrentPace } from "../config/clock/retry.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { ConfigInput } from "../config/document.ts"
import { GatewayRoutes, GatewayServices, routerConfig } from "../server/Gateway.ts"
import { serveGateway } from "../server/serve.ts"
import { EmbeddedDriver } from "../upstream/layer.ts"
import { makeScriptedDriver } from "./embedded.ts"
import type { ReferenceOptions } from "./Provider.ts"
import { layer as layerReference, Reference } from "./Reference.ts"

/** Options of a gateway for tests. */
export interface GatewayTestOptions {
  /**
   * Groups of the configuration. The defaults are the business key `test-key`, one account that logs in to the reference
   * upstream, and that upstream.
   */
  readonly config?: ConfigInput | undefined
  /** The reference upstream: its accounts, limits and pace. By default it is unlimited and streams at full speed. */
  readonly reference?: ReferenceOptions | undefined
  /** The admin key; `test-admin-key` by default. */
  readonly adminKey?: string | undefined
  /** Receives the log; without it logging is off. */
  readonly logger?: Logger.Logger<unknown, void> | undefined
  /**
   * Scales the delays between retries of a failing upstream, from 0 (the default: retries follow immediately) to 1. All other
   * time is the `Clock`'s, which `TestClock` moves.
   */
  readonly pace?: number | undefined
}

const businessKey = "test-key"
const usualAdminKey = "test-admin-key"

const quiet = ({ logger, pace = 0 }: GatewayTestOptions) =>
  Layer.mergeAll(
    Logger.layer(logger === undefined ? [] : [logger]),
    Layer.succeed(CurrentPace, pace),
    Layer.succeed(EmbeddedDriver, makeScriptedDriver)
  )

const configured = ({ adminKey = usualAdminKey, config }: GatewayTestOptions, baseUrl: string) =>
  ConfigStore.layerMemory(
    {
      keys: [businessKey],
      accounts: [{ email: "account@gateway.test", password: "password" }],
      ...config,
      upstream: { driver: "session", base_url: baseUrl, ...config?.upstream }
    },
    { adminKey }
  )

/** The gateway and its upstream as a test uses them. */
interface Shape {
  /** The gateway's address, without a trailing slash. */
  readonly url: string
  /** The first business key. */
  readonly key: string
  readonly adminKey: string
  /** Calls the gateway; the host of the URL is ignored. Pass it to a vendor's SDK with `url` as the base URL. */
  readonly fetch: typeof globalThis.fetch
  /** Calls the gateway with the business key; requests contain the path only. */
  readonly client: HttpClient.HttpClient
  /**
   * The upstream. `fail` and `reply` set its next replies, `cut` ends a hanging reply, `report` returns what it has received,
   * and `until` waits for a report, so that a test never sleeps. A prompt may contain a script too (`!say …`).
   */
  readonly upstream: Reference["Service"]
}

const make = (
  options: GatewayTestOptions,
  url: string,
  fetch: typeof globalThis.fetch
): Effect.Effect<Shape, never, Reference> =>
  Effect.gen(function*() {
    const key = options.config?.keys?.[0] ?? businessKey
    const keyText = typeof key === "string" ? key : businessKey
    const client = yield* Effect.provide(
      HttpClient.HttpClient,
      Layer.provide(FetchHttpClient.layer, Layer.succeed(FetchHttpClient.Fetch, fetch))
    )
    return {
      url,
      key: keyText,
      adminKey: options.adminKey ?? usualAdminKey,
      fetch,
      client: HttpClient.mapRequest(
        client,
        (request) =>
          request.pipe(
            HttpClientRequest.prependUrl(url),
            "authorization" in request.headers ? (same) => same : HttpClientRequest.bearerToken(keyText)
          )
      ),
      upstream: yield* Reference
    }
  })

const inProcessUrl = "http://gateway.test"

const Router = Layer.fresh(
  Layer.provide(HttpRouter.layer, Layer.succeed(HttpRouter.RouterConfig, routerConfig))
)

/** The gateway as a `fetch`, in the current scope. All its requests go to `client`, whatever their host. */
export const inProcess = (options: GatewayTestOptions, client: HttpClient.HttpClient) =>
  Effect.gen(function*() {
    const around = yield* Effect.context<never>()
    const built = yield* Layer.build(
      GatewayRoutes.pipe(
        Layer.provideMerge(Router),
        Layer.provideMerge(GatewayServices),
        Layer.provideMerge(configured(options, "http://upstream.test")),
        Layer.provideMerge([
          Layer.succeed(HttpClient.HttpClient, client),
          NodeServices.layer,
          HttpServer.layerServices
        ]),
        Layer.provideMerge(quiet(options))
      )
    )
    const handle = HttpEffect.toWebHandlerWith<never, HttpServerRequest.HttpServerRequest | Scope.Scope>(
      Context.merge(around, built)
    )(Context.get(built, HttpRouter.HttpRouter).asHttpEffect())
    const fetch: typeof globalThis.fetch = (input, init) => handle(new Request(input, init))
    return fetch
  })

const buildInProcess = (options: GatewayTestOptions) =>
  Effect.gen(function*() {
    const { client } = yield* Reference
    return yield* make(options, inProcessUrl, yield* inProcess(options, client))
  })

const buildServer = (options: GatewayTestOptions) =>
  Effect.gen(function*() {
    const { listen } = yield* Reference
    const served = serveGateway({ port: 0, host: "127.0.0.1" }).pipe(
      Layer.provide(configured(options, yield* listen())),
      Layer.provide([NodeHttpClient.layerUndici, NodeServices.layer, quiet(options)])
    )
    const { address } = Context.get(yield* Layer.build(served), HttpServer.HttpServer)
    return yield* make(options, HttpServer.formatAddress(address), globalThis.fetch)
  })

/**
 * The gateway and its upstream. Each layer is a separate gateway that lives as long as its scope.
 *
 * `GatewayTest.layer()` needs no socket and follows the surrounding `Clock`. `GatewayTest.layerServer()` and its upstream listen
 * on free ports of 127.0.0.1, for clients in other processes.
 */
export class GatewayTest extends Context.Service<GatewayTest, Shape>()("model-gateway/testing/GatewayTest") {
  /** Without sockets: call it by `fetch` and `client`. Fails when the configuration is invalid. */
  static readonly layer = (options: GatewayTestOptions = {}) =>
    Layer.provideMerge(Layer.effect(GatewayTest, buildInProcess(options)), layerReference(options.reference))

  /** On sockets. Fails when the configuration is invalid or listening fails. */
  static readonly layerServer = (options: GatewayTestOptions = {}) =>
    Layer.provideMerge(Layer.effect(GatewayTest, buildServer(options)), layerReference(options.reference))
}
