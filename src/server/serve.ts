/**
 * The gateway as a running node service.
 */
import * as NodeServices from "@effect/platform-node/NodeServices"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { existsSync } from "node:fs"
import { layerAdminEnvironment } from "../admin/AdminEnvironment.ts"
import { GivenNodeId } from "../admin/nodes/Nodes.ts"
import { buildInfo, currentVersion } from "../admin/system/build.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { Environment, textVariable } from "../config/Environment.ts"
import { checkProxyVariables } from "../config/proxies.ts"
import { storeSettings } from "../config/storeSettings.ts"
import { layerWebClient } from "../upstream/transports/webClient.ts"
import { UsageStore } from "../usage/UsageStore.ts"
import { builtAssets } from "./assets.ts"
import { announce } from "./banner.ts"
import { gatewayServices } from "./Gateway.ts"
import { collectWhenIdle } from "./idleMemory.ts"
import { inheritedSocket } from "./inheritedSocket.ts"
import type { ListenOptions } from "./listen.ts"
import { isTerminal, layerLogging } from "./loggers.ts"
import { layerRegistry } from "./observability/requestMetrics.ts"
import { NodeUpstream, serveServices } from "./serveServices.ts"
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

const NodeGatewayServices = gatewayServices(NodeUpstream)

/** Loads the assets at the start, so that the installation can be replaced under a running gateway. */
const keepAssets = Effect.sync(() => {
  if (buildInfo.form !== "source") builtAssets()
})

/** Serves the gateway on a node server. Provides the services of the routes. */
export const serveGateway = (options: ListenOptions) => serveServices(options, NodeGatewayServices, Effect.void)

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
  const announced = machine?.announces === false
    ? Effect.void
    : Effect.andThen(announce(isTerminal), inherited === undefined ? warnOfLoopback(host) : Effect.void)
  const opening = Effect.andThen(announced, collectWhenIdle)
  const gateway = shared === undefined
    ? serveServices(listen, NodeGatewayServices, opening).pipe(
      Layer.provide(UsageStore.layer),
      Layer.provideMerge(ConfigStore.layer)
    )
    : Layer.unwrap(
      Effect.map(
        Effect.promise(() => import("./serveShared.ts")),
        ({ serveNode }) => serveNode(listen, shared, opening)
      )
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
