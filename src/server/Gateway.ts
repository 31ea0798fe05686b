/**
 * The whole gateway as layers. Reads like a table of contents: routes over styles over the completion service over the pool
 * over the upstream over the configuration.
 */
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Layer from "effect/Layer"
import { AdminEdges } from "../admin/edgeLayers.ts"
import { Draining } from "../admin/events/EventFeed.ts"
import { AdminHandlers } from "../admin/layers.ts"
import type { Served } from "../http/groupRoutes.ts"
import { StyleHandlers } from "../styles/handlers.ts"
import type { StyleId } from "../styles/styles.ts"
import { OperatorApi } from "./Api.ts"
import { Documents } from "./documents/routes.ts"
import { EveryRequest } from "./everyRequest.ts"
import { HealthHandlers } from "./health.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { MetricsHandlers } from "./observability/metricsRoute.ts"
import { SampleReplayLive } from "./replay.ts"
import { SelfClientLive } from "./selfClient.ts"
import { routerConfig } from "./services.ts"

export { GatewayServices, gatewayServices } from "./services.ts"
export { routerConfig }

/** The routes of all styles; the compiler names a style of the list that nothing serves. */
const StyleRoutes = StyleHandlers satisfies Layer.Layer<Served<StyleId>, unknown, unknown>

const Handlers = Layer.mergeAll(
  HealthHandlers,
  MetricsHandlers,
  AdminHandlers
)

/** Streams of events end when the gateway drains. */
const DrainingLive = Layer.effect(Draining, Effect.map(Lifecycle, (lifecycle) => lifecycle.draining))

/** The routes, for a router that they have to themselves: they answer every path. `mountGateway` shares one. */
export const GatewayRoutes = Layer.mergeAll(
  StyleRoutes,
  HttpApiBuilder.layer(OperatorApi).pipe(
    Layer.provide(Handlers),
    Layer.provide(AdminEdges),
    Layer.provide(SelfClientLive),
    Layer.provide(SampleReplayLive),
    Layer.provide(DrainingLive)
  ),
  Documents,
  EveryRequest
)
