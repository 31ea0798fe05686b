/**
 * The routes of the gateway over given services, on a node server.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { CurrentShutdown, Shutdown } from "../config/clock/Shutdown.ts"
import { ServerHasServices } from "../http/groupRoutes.ts"
import * as UpstreamLayer from "../upstream/layer.ts"
import { layerUndici } from "../upstream/transports/undici.ts"
import { ConsoleRoutes } from "./console/routes.ts"
import { GatewayRoutes, routerConfig } from "./Gateway.ts"
import type { ListenOptions } from "./listen.ts"
import { NodeServer } from "./nodeServer.ts"
import { Observability } from "./observability/Observability.ts"
import type { GatewayServices } from "./services.ts"
import { ClientCertificates, hasCertificate, startTls } from "./tls.ts"

/** The configured upstreams over undici. */
export const NodeUpstream = Layer.provide(UpstreamLayer.layer, layerUndici)

/** Maximum number of services that a request adds to its context. */
const mostAdded = 16

/**
 * Builds a layer whose context can grow without a copy. By default the ninth added service copies the whole map, for each
 * request.
 */
const withRoomToAdd = <E, R>(layer: Layer.Layer<never, E, R>): Layer.Layer<never, E, R> =>
  Layer.effectDiscard(
    Effect.updateContext(Layer.build(layer), (context: Context.Context<R | Scope.Scope>) =>
      Context.makeUnsafe<R | Scope.Scope>(new Map(context.mapUnsafe), { maxDepth: mostAdded }))
  )

/** Declares that the routes and the server share their services. */
const servedHere = Layer.succeed(ServerHasServices, true)

/**
 * Serves the gateway's routes over its services. `opening` runs before the first request is answered: the server listens already, and keeps early
 * requests.
 */
export const serveServices = <A, E, R, E2, R2>(
  options: ListenOptions,
  services: Layer.Layer<A | Layer.Success<typeof GatewayServices>, E, R>,
  opening: Effect.Effect<unknown, E2, R2>
) => {
  const shutdown = new Shutdown()
  return Layer.unwrap(Effect.map(startTls, (tls) => {
    const node = NodeServer(options, shutdown, tls)
    return node.drain.pipe(
      Layer.provideMerge(
        withRoomToAdd(HttpRouter.serve(Layer.provide(Layer.merge(GatewayRoutes, ConsoleRoutes), servedHere), {
          routerConfig,
          disableLogger: true,
          disableListenLog: true
        }))
      ),
      Layer.provideMerge(Layer.effectDiscard(opening)),
      Layer.provideMerge(services),
      Layer.provide(Layer.succeed(CurrentShutdown, shutdown)),
      Layer.provide(tls?.requestCert === true ? Layer.succeed(ClientCertificates, hasCertificate) : Layer.empty),
      Layer.provideMerge(node.server),
      Layer.provide(Layer.fresh(Observability))
    )
  }))
}
