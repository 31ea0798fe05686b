/**
 * The gateway as a running node service.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { existsSync } from "node:fs"
import { layerAdminEnvironment } from "../admin/AdminEnvironment.ts"
import { GivenNodeId } from "../admin/nodes/Nodes.ts"
import { buildInfo, currentVersion } from "../admin/system/build.ts"
import { Store } from "../cluster/store/Store.ts"
import { CurrentShutdown, Shutdown } from "../config/clock/Shutdown.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { Environment, textVariable } from "../config/Environment.ts"
import { checkProxyVariables } from "../config/proxies.ts"
import { storeSettings } from "../config/storeSettings.ts"
import { ServerHasServices } from "../http/groupRoutes.ts"
import * as UpstreamLayer from "../upstream/layer.ts"
import { layerUndici } from "../upstream/transports/undici.ts"
import { layerWebClient } from "../upstream/transports/webClient.ts"
import { UsageStore } from "../usage/UsageStore.ts"
import { builtAssets } from "./assets.ts"
import { announce } from "./banner.ts"
import { ConsoleRoutes } from "./console/routes.ts"
import { GatewayRoutes, gatewayServices, routerConfig } from "./Gateway.ts"
import { layerIdleMemory } from "./idleMemory.ts"
import { inheritedSocket } from "./inheritedSocket.ts"
import type { ListenOptions } from "./listen.ts"
import { isTerminal, layerLogging } from "./loggers.ts"
import { NodeServer } from "./nodeServer.ts"
import { Observability } from "./observability/Observability.ts"
import { layerRegistry } from "./observability/requestMetrics.ts"
import { SharedState } from "./services.ts"
import { CurrentMachine } from "./workers/Machine.ts"

/** Files and variables that common engines create in their containers. */
const files = ["/.dockerenv", "/run/.containerenv"]
const variables = ["container", "KUBERNETES_SERVICE_HOST"]

const inContainer: Effect.Effect<boolean> = Effect.map(
  Effect.forEach(variables, textVariable),
  (values) => values.some((value) => value !== "") || files.some((file) => existsSync(file))
)

/** Whether an address is reachable only from the same machine or container. */
const isLoopback = (host: string): boolean => /^(?:localhost|127(?:\.\d+){3}|::1)$/i.test(host)

/** The configured upstream over undici. */
const NodeUpstream = Layer.provide(UpstreamLayer.layer, layerUndici)

const NodeGatewayServices = gatewayServices(NodeUpstream)
const SharedGatewayServices = gatewayServices(NodeUpstream, SharedState)

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

/** `opening` runs before the first request is answered: the server listens already, and keeps early requests. */
const serveServices = <A, E, R, E2, R2>(
  options: ListenOptions,
  services: Layer.Layer<A | Layer.Success<typeof NodeGatewayServices>, E, R>,
  opening: Effect.Effect<unknown, E2, R2>
) => {
  const shutdown = new Shutdown()
  const node = NodeServer(options, shutdown)
  return node.drain.pipe(
    Layer.provideMerge(
      withRoomToAdd(HttpRouter.serve(Layer.provide(Layer.merge(GatewayRoutes, ConsoleRoutes), servedHere), {
        routerConfig,
        disableLogger: true,
        disableListenLog: true
      }))
    ),
    Layer.provideMerge(Layer.effectDiscard(opening)),
    Layer.provideMerge(layerIdleMemory),
    Layer.provideMerge(services),
    Layer.provide(Layer.succeed(CurrentShutdown, shutdown)),
    Layer.provideMerge(node.server),
    Layer.provide(Layer.fresh(Observability))
  )
}

/** Loads the assets at the start, so that the installation can be replaced under a running gateway. */
const keepAssets = Effect.sync(() => {
  if (buildInfo.form !== "source") builtAssets()
})
/** Serves the gateway on a node server. Provides the services of the routes. */
export const serveGateway = (options: ListenOptions) => serveServices(options, NodeGatewayServices, Effect.void)

/** Serves the gateway as a node of a cluster. */
export const serveSharedGateway = (options: ListenOptions) => serveServices(options, SharedGatewayServices, Effect.void)

/** Warns of a loopback address in a container, which hides the gateway from outside. */
const warnOfLoopback = (host: string) =>
  Effect.gen(function*() {
    if (isLoopback(host) && (yield* inContainer)) {
      yield* Effect.logWarning(`In a container, ${host} is reached only from inside it: set HOST=0.0.0.0 to be reached`)
    }
  })

export const serve = Effect.gen(function*() {
  const environment = yield* Environment
  yield* checkProxyVariables
  const machine = yield* CurrentMachine
  const { host, port } = environment
  const inherited = yield* inheritedSocket
  const listen: ListenOptions = { port, host, descriptor: machine?.descriptor ?? inherited }
  const shared = yield* Effect.provide(storeSettings(environment, currentVersion), NodeServices.layer)
  const id = shared?.nodeId ?? environment.nodeId
  const named = id === undefined
    ? Layer.empty
    : Layer.merge(Layer.succeed(References.CurrentLogAnnotations, { node: id }), Layer.succeed(GivenNodeId, id))
  const opening = machine?.announces === false
    ? Effect.void
    : Effect.andThen(announce(isTerminal), inherited === undefined ? warnOfLoopback(host) : Effect.void)
  const gateway = shared === undefined
    ? serveServices(listen, NodeGatewayServices, opening).pipe(
      Layer.provide(UsageStore.layer),
      Layer.provideMerge(ConfigStore.layer)
    )
    : serveServices(listen, SharedGatewayServices, opening).pipe(
      Layer.provide(UsageStore.layerShared),
      Layer.provideMerge(ConfigStore.layerShared),
      Layer.provide(Store.layerRedis(shared))
    )
  return yield* Layer.launch(
    Layer.effectDiscard(
      Effect.all([keepAssets, Effect.sync(() => machine?.ready())])
    ).pipe(
      Layer.provide(gateway),
      Layer.provide(named),
      // The metrics of the shared store go to the same registry.
      Layer.provide(layerRegistry),
      Layer.provide(layerAdminEnvironment),
      Layer.provide(layerWebClient),
      Layer.provide(NodeServices.layer),
      Layer.provide(layerLogging(environment.logLevel))
    )
  )
})
