/**
 * Everything below the routes as layers: the completion service over the pool over the upstream over the configuration.
 */
import * as Layer from "effect/Layer"
import { Accounts } from "../accounts/Accounts.ts"
import { Callers } from "../accounts/Callers.ts"
import { AdminAuth } from "../admin/auth/AdminAuth.ts"
import { SampleFolder } from "../admin/samples/SampleFolder.ts"
import { Captures } from "../captures/Captures.ts"
import { Completion } from "../completion/Completion.ts"
import { UsageRecorder } from "../completion/UsageRecorder.ts"
import { layerLimits } from "../config/CurrentLimits.ts"
import { ResponsesStore } from "../responses-store/ResponsesStore.ts"
import { layerHttpClient } from "../upstream/exchanges/httpClient.ts"
import * as UpstreamLayer from "../upstream/layer.ts"
import type { Upstream } from "../upstream/Upstream.ts"
import { KeyLimits } from "../usage/KeyLimits.ts"
import { UsageStore } from "../usage/UsageStore.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { Gauges } from "./observability/gauges.ts"

/** Everything below the routes over an upstream of one's own; needs the configuration, and files for raw samples. */
export const gatewayServices = <E, R>(upstream: Layer.Layer<Upstream, E, R>) =>
  Layer.mergeAll(Completion.layer, Gauges.layer).pipe(
    Layer.provideMerge(
      Layer.mergeAll(Accounts.layer, Captures.layer, ResponsesStore.layer, AdminAuth.layer)
    ),
    Layer.provideMerge(Callers.layer),
    Layer.provideMerge(Layer.merge(KeyLimits.layer, UsageRecorder.layer)),
    Layer.provideMerge(UsageStore.layerOrMemory),
    Layer.provideMerge(upstream),
    Layer.provide(SampleFolder.layerRecordings),
    Layer.provideMerge(SampleFolder.layer),
    Layer.provideMerge(Lifecycle.layer),
    Layer.provideMerge(layerLimits)
  )

/** Everything below the routes over the configured upstream; needs an HTTP client too. */
export const GatewayServices = gatewayServices(Layer.provide(UpstreamLayer.layer, layerHttpClient))

/** How a router must take paths: long keys and ids stand in them, and method names in them are case-sensitive. */
export const routerConfig = { maxParamLength: 4096, caseSensitive: true } as const
