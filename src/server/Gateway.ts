/**
 * The whole gateway as layers: routes over styles over the completion service over the pool over the upstream over the
 * configuration.
 */
import * as Effect from "effect/Effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as Layer from "effect/Layer"
import { shuttingDown } from "../accounts/refusals.ts"
import { ChangeLog } from "../admin/history/ChangeLog.ts"
import { AdminHandlers } from "../admin/layers.ts"
import { AdminMiddlewares } from "../admin/middlewareLayers.ts"
import { Draining } from "../http/Draining.ts"
import type { Served } from "../http/groupRoutes.ts"
import { StyleHandlers } from "../styles/handlers.ts"
import type { StyleId } from "../styles/styles.ts"
import { layerWebClient } from "../upstream/transports/webClient.ts"
import { Help } from "./documents/help.ts"
import { Documents } from "./documents/routes.ts"
import { EveryRequest } from "./everyRequest.ts"
import { HealthHandlers } from "./health.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { MetricsHandlers } from "./observability/metrics.ts"
import { OperatorApi } from "./OperatorApi.ts"
import { SampleReplayLive } from "./replay.ts"
import { SelfClientLive } from "./selfClient.ts"
import { routerConfig } from "./services.ts"
import { layerDeliveries } from "./webhooks/Deliveries.ts"

export { GatewayServices, gatewayServices } from "./services.ts"
export { routerConfig }

/** The routes of all styles. The compiler reports a style without handlers. */
const StyleRoutes = StyleHandlers satisfies Layer.Layer<Served<StyleId>, unknown, unknown>

const Handlers = Layer.mergeAll(
  HealthHandlers,
  MetricsHandlers,
  AdminHandlers
)

/** Ends event streams and WebSocket connections when the gateway drains or another worker takes its place. */
const DrainingLive = Layer.effect(Draining, Effect.map(Lifecycle, ({ leaving }) => Effect.as(leaving, shuttingDown)))

/** The routes for a dedicated router; they answer every path. `mountGateway` shares a router. */
export const GatewayRoutes = Layer.mergeAll(
  StyleRoutes,
  HttpApiBuilder.layer(OperatorApi).pipe(
    Layer.provide(Handlers),
    Layer.provide(AdminMiddlewares),
    Layer.provide(ChangeLog.layer),
    Layer.provide(SelfClientLive),
    Layer.provide(SampleReplayLive),
    Layer.provide(Layer.provide(layerDeliveries, layerWebClient))
  ),
  Documents,
  Help,
  EveryRequest
).pipe(Layer.provide(DrainingLive))
