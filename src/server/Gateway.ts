/**
 * The whole gateway as layers. Reads like a table of contents: routes over styles over the completion service over the pool
 * over the upstream over the configuration.
 */
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import { Accounts } from "../accounts/Accounts.ts"
import { Callers } from "../accounts/Callers.ts"
import { AdminAuth } from "../admin/auth/AdminAuth.ts"
import { AdminEdges } from "../admin/edgeLayers.ts"
import { AdminHandlers } from "../admin/layers.ts"
import { SampleFolder } from "../admin/samples/SampleFolder.ts"
import { Captures } from "../captures/Captures.ts"
import { Completion } from "../completion/Completion.ts"
import { layerLimits } from "../config/CurrentLimits.ts"
import { ResponsesStore } from "../responses-store/ResponsesStore.ts"
import { ChatHandlers } from "../styles/chat/Handlers.ts"
import { StyleEdges } from "../styles/edgeLayers.ts"
import { EmbeddingsHandlers } from "../styles/embeddings/Handlers.ts"
import { GenerateHandlers } from "../styles/generate/Handlers.ts"
import { MessagesHandlers } from "../styles/messages/Handlers.ts"
import { ModelsHandlers } from "../styles/models/Handlers.ts"
import { ResponsesHandlers } from "../styles/responses/Handlers.ts"
import * as UpstreamLayer from "../upstream/layer.ts"
import type { Upstream } from "../upstream/Upstream.ts"
import { GatewayApi } from "./Api.ts"
import { Documents } from "./documents/routes.ts"
import { EveryRequest } from "./everyRequest.ts"
import { HealthHandlers } from "./health.ts"
import { Lifecycle } from "./Lifecycle.ts"
import { Gauges } from "./observability/gauges.ts"
import { MetricsHandlers } from "./observability/metricsRoute.ts"
import { SelfClientLive } from "./selfClient.ts"

/** Headers that browsers may send (spec "Common facts"). */
const corsHeaders = [
  "Content-Type",
  "Authorization",
  "X-API-Key",
  "X-Gateway-Target-Account",
  "X-Host-Protection-Bypass"
]

const Cors = HttpRouter.cors({ allowedHeaders: corsHeaders, exposedHeaders: ["X-Request-Id", "Retry-After"] })

const Handlers = Layer.mergeAll(
  ChatHandlers,
  ResponsesHandlers,
  EmbeddingsHandlers,
  MessagesHandlers,
  GenerateHandlers,
  ModelsHandlers,
  HealthHandlers,
  MetricsHandlers,
  AdminHandlers
)

const Edges = Layer.merge(StyleEdges, AdminEdges)

/** Everything below the routes over an upstream of one's own; needs the configuration, and files for raw samples. */
export const gatewayServices = <E, R>(upstream: Layer.Layer<Upstream, E, R>) =>
  Layer.mergeAll(Completion.layer, Gauges.layer).pipe(
    Layer.provideMerge(
      Layer.mergeAll(Accounts.layer, Captures.layer, ResponsesStore.layer, AdminAuth.layer)
    ),
    Layer.provideMerge(Callers.layer),
    Layer.provideMerge(upstream),
    Layer.provide(SampleFolder.layerRecordings),
    Layer.provideMerge(SampleFolder.layer),
    Layer.provideMerge(Lifecycle.layer),
    Layer.provideMerge(layerLimits)
  )

/** Everything below the routes over the configured upstream; needs an HTTP client too. */
export const GatewayServices = gatewayServices(UpstreamLayer.layer)

/** How a router must take paths: long keys and ids stand in them, and method names in them are case-sensitive. */
export const routerConfig = { maxParamLength: 4096, caseSensitive: true } as const

/** The routes, for a router that they have to themselves: they answer every path. `mountGateway` shares one. */
export const GatewayRoutes = Layer.mergeAll(
  HttpApiBuilder.layer(GatewayApi).pipe(Layer.provide(Handlers), Layer.provide(Edges), Layer.provide(SelfClientLive)),
  Documents,
  EveryRequest,
  Cors
)
