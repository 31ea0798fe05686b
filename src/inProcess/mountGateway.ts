/**
 * Mounts the gateway in the router of another app.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import { GatewayRoutes, routerConfig } from "../server/Gateway.ts"
import { PathsAreOwn } from "../server/selfClient.ts"

/** A separate router for the gateway's routes; `Layer.fresh` keeps it apart from the app's router. */
const ownRouter = Layer.fresh(
  Layer.provide(HttpRouter.layer, Layer.succeed(HttpRouter.RouterConfig, routerConfig))
)

/**
 * Serves the gateway below a path of the app's `HttpRouter`, with its 404 responses, CORS headers and request ids. Other paths
 * of the app are unaffected. Needs `GatewayServices`.
 *
 * The admin key for `path`/admin and the console is `adminKey` of `ConfigStore.layerMemory(config, { adminKey })`, or
 * `GATEWAY_ADMIN_KEY` with `ConfigStore.layer`. Without either the gateway generates a key: `adminKey` of
 * `AdminCredentials`.
 */
export const mountGateway = (path: `/${string}`) =>
  Layer.effectDiscard(Effect.gen(function*() {
    const outer = yield* HttpRouter.HttpRouter
    const routes = Layer.provide(GatewayRoutes, Layer.succeed(PathsAreOwn, true))
    const built = yield* Layer.build(Layer.provideMerge(routes, ownRouter))
    const gateway = Context.get(built, HttpRouter.HttpRouter).asHttpEffect()
    yield* outer.prefixed(path).add("*", "/*", gateway)
  }))
