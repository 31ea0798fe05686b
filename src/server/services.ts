/**
 * All services below the routes as layers: the completion service over the pool over the upstream over the configuration.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { Accounts } from "../accounts/Accounts.ts"
import { AdminSecrets } from "../accounts/AdminSecrets.ts"
import { Callers } from "../accounts/Callers.ts"
import { CredentialThrottles } from "../accounts/CredentialThrottles.ts"
import type { UpstreamActivity } from "../accounts/UpstreamActivity.ts"
import { AdminAuth } from "../admin/auth/AdminAuth.ts"
import { Nodes } from "../admin/nodes/Nodes.ts"
import { currentVersion } from "../admin/system/build.ts"
import { layerCompletion } from "../completion/makeCompletion.ts"
import { UsageRecorder } from "../completion/UsageRecorder.ts"
import { Deadlines } from "../config/clock/Deadlines.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { ConfigTransfer } from "../config/ConfigTransfer.ts"
import { AccountEntries } from "../config/entries/AccountEntries.ts"
import { Keys } from "../config/entries/Keys.ts"
import { Prices } from "../config/entries/Prices.ts"
import { Routes } from "../config/entries/Routes.ts"
import { Tokens } from "../config/entries/Tokens.ts"
import { UpstreamEntries } from "../config/entries/UpstreamEntries.ts"
import { Webhooks } from "../config/entries/Webhooks.ts"
import { CurrentLimits, layerBufferedBytes } from "../config/limits.ts"
import { layerNotices } from "../config/Notices.ts"
import { Rehearsals } from "../http/Rehearsals.ts"
import { WorkLimit } from "../http/WorkLimit.ts"
import { Captures } from "../recordings/Captures.ts"
import { Requests } from "../recordings/Requests.ts"
import { SampleFolder } from "../recordings/SampleFolder.ts"
import { layerResponses } from "../styles/responses/store/memoryResponses.ts"
import type { ResponsesStore } from "../styles/responses/store/ResponsesStore.ts"
import * as UpstreamLayer from "../upstream/layer.ts"
import { layerReadModels } from "../upstream/readModels.ts"
import { layerHttpClient } from "../upstream/transports/httpClient.ts"
import type { Upstreams } from "../upstream/Upstreams.ts"
import { KeyLimits } from "../usage/KeyLimits.ts"
import { UsageStore } from "../usage/UsageStore.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { Gauges } from "./observability/gauges.ts"
import { layerRegistry, RequestMetrics } from "./observability/requestMetrics.ts"

/** State that nodes may share. */
export type GatewayState = Accounts | UpstreamActivity | AdminSecrets | ResponsesStore | Nodes | KeyLimits

/** State of one process. */
export const InProcessState = Nodes.layer(currentVersion).pipe(
  Layer.provideMerge(Accounts.layer),
  Layer.merge(layerResponses),
  Layer.merge(AdminSecrets.layer),
  Layer.merge(KeyLimits.layer)
)

/** What is done with a configuration, over the store that has it. */
const layerConfigTasks = Layer.mergeAll(
  ConfigTransfer.layer,
  Keys.layer,
  AccountEntries.layer,
  Routes.layer,
  UpstreamEntries.layer,
  Tokens.layer,
  Prices.layer,
  Webhooks.layer
)

/** The configured limits; a change applies from the next request on. */
const layerLimits = Layer.effect(CurrentLimits, Effect.map(ConfigStore, (config) => () => config.now().limits))

const servicesOver = <E, R, E2, R2>(
  upstreams: Layer.Layer<Upstreams, E, R>,
  state: Layer.Layer<GatewayState, E2, R2>
) =>
  Layer.mergeAll(layerCompletion, Gauges.layer, layerReadModels).pipe(
    Layer.provideMerge(
      Layer.mergeAll(Captures.layer, Requests.layer, AdminAuth.layer, Callers.layer, Rehearsals.layer).pipe(
        Layer.provide(CredentialThrottles.layer),
        Layer.provideMerge(state)
      )
    ),
    Layer.provideMerge(UsageRecorder.layer),
    Layer.provideMerge(UsageStore.layerOrMemory),
    Layer.provideMerge(upstreams),
    Layer.provideMerge(SampleFolder.layer),
    Layer.provideMerge(Lifecycle.layer),
    Layer.provideMerge(Layer.mergeAll(WorkLimit.layer, RequestMetrics.layer)),
    Layer.provideMerge(layerConfigTasks),
    Layer.provideMerge(Layer.mergeAll(Deadlines.layer, layerBufferedBytes, layerLimits, layerRegistry, layerNotices))
  )

/** Removes the memo map from the built services. */
const builtWith = <A, E, R>(layer: Layer.Layer<A, E, R>, memoMap: Layer.MemoMap, scope: Scope.Scope) =>
  Effect.map(
    Layer.buildWithMemoMap(layer, memoMap, scope),
    (context): Context.Context<A> => Context.makeUnsafe(Context.omit(Layer.CurrentMemoMap)(context).mapUnsafe)
  )

/**
 * One separate gateway, built once. Layers are memoized by reference, so the gateway's parts would otherwise be shared
 * with other gateways, including their upstream and keys. Layers from the embedder are shared with the app as usual.
 */
const oneGateway = <E, R, E2, R2>(upstreams: Layer.Layer<Upstreams, E, R>, state: Layer.Layer<GatewayState, E2, R2>) =>
  Layer.fromBuildMemo((ofApp, scope) => {
    const brought = Layer.fromBuild((_, within) => builtWith(upstreams, ofApp, within))
    return builtWith(servicesOver(brought, state), Layer.makeMemoMapUnsafe(), scope)
  })

type InProcess = typeof InProcessState
type Services<E, R, E2, R2> = ReturnType<typeof servicesOver<E, R, E2, R2>>

/**
 * All services below the routes over given upstreams. Needs the configuration and file services. Each call makes a
 * separate gateway, built once within an app.
 */
export function gatewayServices<E, R>(
  upstreams: Layer.Layer<Upstreams, E, R>
): Services<E, R, Layer.Error<InProcess>, Layer.Services<InProcess>>
/** The same with the given state: `SharedState` of `model-gateway/cluster`, or the embedder's own. */
export function gatewayServices<E, R, E2, R2>(
  upstreams: Layer.Layer<Upstreams, E, R>,
  state: Layer.Layer<GatewayState, E2, R2>
): Services<E, R, E2, R2>
export function gatewayServices(
  upstreams: Layer.Layer<Upstreams, unknown, unknown>,
  state: Layer.Layer<GatewayState, unknown, unknown> = InProcessState
): unknown {
  return oneGateway(upstreams, state)
}

/**
 * All services below the routes over the configured upstreams. Needs an HTTP client too. An app with two such gateways uses
 * `Layer.fresh` for each.
 */
export const GatewayServices = gatewayServices(Layer.provide(UpstreamLayer.layer, layerHttpClient))

/** Router options: path parameters hold long keys and ids, and method names are case-sensitive. */
export const routerConfig = { maxParamLength: 4096, caseSensitive: true } as const
