/**
 * The whole gateway over the reference upstream, for tests: every part is the product's own, and nothing leaves the process.
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
import { CurrentPace } from "../config/clock/pause.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { ConfigInput } from "../config/document.ts"
import { GatewayRoutes, GatewayServices, routerConfig } from "../server/Gateway.ts"
import { serveGateway } from "../server/serve.ts"
import type { ReferenceOptions } from "../testing/Options.ts"
import { layer as layerReference, Reference } from "../testing/Reference.ts"

/** How a gateway for tests is set up. */
export interface GatewayTestOptions {
  /**
   * Groups of the configuration in place of its own, which are the business key `test-key`, one account that anybody may log in
   * to, and the reference upstream.
   */
  readonly config?: ConfigInput | undefined
  /** The reference upstream: its accounts, limits and pace. By default it has no limits and streams as fast as it can. */
  readonly reference?: ReferenceOptions | undefined
  /** The admin key (`test-admin-key`). */
  readonly adminKey?: string | undefined
  /** Without one nothing is logged. */
  readonly logger?: Logger.Logger<unknown, void> | undefined
  /**
   * The share of the waits between two tries at a failing upstream that passes, from 0 to 1 (0: tries follow each other at
   * once). All other time is that of the `Clock`: `TestClock` moves it.
   */
  readonly pace?: number | undefined
}

const businessKey = "test-key"
const usualAdminKey = "test-admin-key"

const quiet = ({ logger, pace = 0 }: GatewayTestOptions) =>
  Layer.merge(Logger.layer(logger === undefined ? [] : [logger]), Layer.succeed(CurrentPace, pace))

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

/** What a test has in hand. */
interface Shape {
  /** The gateway's address, without a slash at its end. */
  readonly url: string
  /** The first business key. */
  readonly key: string
  readonly adminKey: string
  /** Asks the gateway, whatever the host; give it to a vendor's SDK with `url` as the base address. */
  readonly fetch: typeof globalThis.fetch
  /** Asks the gateway with the business key; requests name the path alone. */
  readonly client: HttpClient.HttpClient
  /**
   * The upstream: `fail` and `reply` order what it does next, `cut` ends what it was ordered to hang, `report` tells what it has
   * seen, and `until` waits for a report, so that a test never waits by the clock. A prompt may hold a script too (`!say …`).
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

const buildInProcess = (options: GatewayTestOptions) =>
  Effect.gen(function*() {
    const around = yield* Effect.context<never>()
    const { client } = yield* Reference
    const built = yield* Layer.build(
      GatewayRoutes.pipe(
        Layer.provideMerge(Router),
        Layer.provideMerge(GatewayServices),
        Layer.provideMerge(configured(options, "http://upstream.test")),
        // Whatever the gateway asks for goes to the upstream, other hosts included.
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
    return yield* make(options, inProcessUrl, (input, init) => handle(new Request(input, init)))
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
 * The gateway and its upstream. Each layer is a gateway of its own, gone with its scope.
 *
 * `GatewayTest.layer()` needs no socket and goes by the `Clock` around it; `GatewayTest.layerServer()` listens on a free port of
 * 127.0.0.1, as its upstream does, for clients that are processes of their own.
 */
export class GatewayTest extends Context.Service<GatewayTest, Shape>()("model-gateway/testing/GatewayTest") {
  /** Without sockets: `fetch` and `client` are the ways to it. Fails where the configuration is not valid. */
  static readonly layer = (options: GatewayTestOptions = {}) =>
    Layer.provideMerge(Layer.effect(GatewayTest, buildInProcess(options)), layerReference(options.reference))

  /** On sockets. Fails where the configuration is not valid, or nothing can be listened on. */
  static readonly layerServer = (options: GatewayTestOptions = {}) =>
    Layer.provideMerge(Layer.effect(GatewayTest, buildServer(options)), layerReference(options.reference))
}
