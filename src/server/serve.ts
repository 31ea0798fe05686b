/**
 * The gateway as a running node service.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type * as LogLevel from "effect/LogLevel"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { layerAdminEnvironment } from "../admin/AdminEnvironment.ts"
import { buildInfo, currentVersion } from "../admin/system/build.ts"
import { GivenNodeId } from "../cluster/nodes/Nodes.ts"
import { Store } from "../cluster/store/Store.ts"
import { CurrentShutdown, Shutdown } from "../config/clock/Shutdown.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { Environment } from "../config/Environment.ts"
import { storeSettings } from "../config/storeSettings.ts"
import { ServerHasServices } from "../http/groupRoutes.ts"
import { layerUndici } from "../upstream/exchanges/undici.ts"
import * as UpstreamLayer from "../upstream/layer.ts"
import { UsageStore } from "../usage/UsageStore.ts"
import { announce } from "./announce.ts"
import { builtAssets } from "./assets.ts"
import { ConsoleRoutes } from "./console/routes.ts"
import { inContainer, isLoopback } from "./container.ts"
import { GatewayRoutes, gatewayServices, routerConfig } from "./Gateway.ts"
import type { ListenOptions } from "./nodeServer.ts"
import { NodeServer } from "./nodeServer.ts"
import { Observability } from "./observability/Observability.ts"
import { layerRegistry } from "./observability/requestMetrics.ts"
import { SharedState } from "./services.ts"
import { inheritedSocket } from "./socketActivation.ts"
import { stdoutLogger } from "./stdoutLogger.ts"
import { terminalLogger } from "./terminalLogger.ts"

/** The configured upstream, called through undici itself. */
const NodeUpstream = Layer.provide(UpstreamLayer.layer, layerUndici)

/** Everything below the routes. */
const NodeGatewayServices = gatewayServices(NodeUpstream)
const SharedGatewayServices = gatewayServices(NodeUpstream, SharedState)

/** Services that a request adds to those of the server, one by one. */
const mostAdded = 16

/**
 * Builds a layer so that what is added to its context does not copy it: by default the ninth service that is added makes a new
 * map of all, for each request.
 */
const withRoomToAdd = <E, R>(layer: Layer.Layer<never, E, R>): Layer.Layer<never, E, R> =>
  Layer.effectDiscard(
    Effect.updateContext(Layer.build(layer), (context: Context.Context<R | Scope.Scope>) =>
      Context.makeUnsafe<R | Scope.Scope>(new Map(context.mapUnsafe), { maxDepth: mostAdded }))
  )

/** The routes and the server are built of the same services. */
const servedHere = Layer.succeed(ServerHasServices, true)

const serveServices = <A, E, R>(
  options: ListenOptions,
  services: Layer.Layer<A | Layer.Success<typeof NodeGatewayServices>, E, R>
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
    Layer.provideMerge(services),
    Layer.provide(Layer.succeed(CurrentShutdown, shutdown)),
    Layer.provideMerge(node.server),
    Layer.provide(Layer.fresh(Observability))
  )
}

/** Once it runs, a gateway needs its files no more: an installation may be replaced under it. */
const keepAssets = Effect.sync(() => {
  if (buildInfo.form !== "source") builtAssets()
})
/** Serves the gateway on a node server. Provides what the routes are built on, for whoever shares it. */
export const serveGateway = (options: ListenOptions) => serveServices(options, NodeGatewayServices)

/** Serves the gateway as one of the nodes of a store. */
export const serveSharedGateway = (options: ListenOptions) => serveServices(options, SharedGatewayServices)

/** What cannot be seen from inside: a gateway that nobody outside of its container reaches. */
const warnOfLoopback = ({ descriptor, host }: ListenOptions) =>
  Effect.gen(function*() {
    if (descriptor === undefined && isLoopback(host) && (yield* inContainer)) {
      yield* Effect.logWarning(`In a container, ${host} is reached only from inside it: set HOST=0.0.0.0 to be reached`)
    }
  })

const isTerminal = process.stdout.isTTY === true

/** Lines for people on a terminal, else one JSON object a line. */
const Logging = (level: LogLevel.LogLevel) =>
  Layer.mergeAll(
    Logger.layer([isTerminal ? terminalLogger : stdoutLogger]),
    Layer.succeed(References.MinimumLogLevel, level)
  )

/** Runs until interrupted; ends by draining. */
export const serve = Effect.gen(function*() {
  const environment = yield* Environment
  const listen = { port: environment.port, host: environment.host, descriptor: yield* inheritedSocket }
  const shared = yield* Effect.provide(storeSettings(environment, currentVersion), NodeServices.layer)
  const id = shared?.nodeId ?? environment.nodeId
  const named = id === undefined
    ? Layer.empty
    : Layer.merge(Layer.succeed(References.CurrentLogAnnotations, { node: id }), Layer.succeed(GivenNodeId, id))
  const gateway = shared === undefined
    ? serveGateway(listen).pipe(Layer.provide(UsageStore.layer), Layer.provideMerge(ConfigStore.layer))
    : serveSharedGateway(listen).pipe(
      Layer.provide(UsageStore.layerShared),
      Layer.provideMerge(ConfigStore.layerShared),
      Layer.provide(Store.layerRedis(shared))
    )
  return yield* Layer.launch(
    Layer.effectDiscard(Effect.all([announce(isTerminal), warnOfLoopback(listen), keepAssets])).pipe(
      Layer.provide(gateway),
      Layer.provide(named),
      // What the shared store counts is the gateway's too.
      Layer.provide(layerRegistry),
      Layer.provide(layerAdminEnvironment),
      Layer.provide(NodeHttpClient.layerUndici),
      Layer.provide(NodeServices.layer),
      Layer.provide(Logging(environment.logLevel))
    )
  )
}).pipe(Effect.provide(Environment.layer))
