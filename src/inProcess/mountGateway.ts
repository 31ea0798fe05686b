/**
 * The gateway within another app's router, and as a web handler.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import { GatewayRoutes, routerConfig } from "../server/Gateway.ts"
import { PathsAreOwn } from "../server/selfClient.ts"

/** A router of the gateway's own, whatever routers there are already. */
const ownRouter = Layer.fresh(
  Layer.provide(HttpRouter.layer, Layer.succeed(HttpRouter.RouterConfig, routerConfig))
)

/**
 * Serves the gateway below a path of the app's `HttpRouter`, its 404s, CORS headers and request ids included; what lies
 * outside that path is not touched. Needs what `GatewayServices` provides.
 *
 * The admin key, for `path`/admin and the console, is the configuration's: `adminKey` of `ConfigStore.layerMemory(config, { adminKey })`,
 * `GATEWAY_ADMIN_KEY` with `ConfigStore.layer`. Without one the gateway generates it: `adminKey` of the `ConfigStore` service.
 */
export const mountGateway = (path: `/${string}`) =>
  Layer.effectDiscard(Effect.gen(function*() {
    const outer = yield* HttpRouter.HttpRouter
    const routes = Layer.provide(GatewayRoutes, Layer.succeed(PathsAreOwn, true))
    const built = yield* Layer.build(Layer.provideMerge(routes, ownRouter))
    const gateway = Context.get(built, HttpRouter.HttpRouter).asHttpEffect()
    yield* outer.prefixed(path).add("*", "/*", gateway)
  }))
