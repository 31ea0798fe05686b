/**
 * `GET /metrics` in the Prometheus text format; needs the admin key unless `metrics.public` is true.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import * as Schema from "effect/Schema"
import { AdminAuth } from "../../admin/auth/AdminAuth.ts"
import { addressOf, AdminOpenEdge } from "../../admin/edges.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { bearerToken } from "../../http/credential.ts"
import { apiId } from "../../http/reply.ts"
import { Gauges } from "./gauges.ts"

export class MetricsGroup extends HttpApiGroup.make("metrics").add(
  HttpApiEndpoint.get("metrics", "/metrics", {
    success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain" }))
  })
).middleware(AdminOpenEdge) {}

const contentType = "text/plain; version=0.0.4; charset=utf-8"

const missing = gatewayError("authentication_failed", "Send Authorization: Bearer <admin key>, or set metrics.public")

export const MetricsHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(MetricsGroup),
  "metrics",
  Effect.fnUntraced(function*(handlers) {
    const auth = yield* AdminAuth
    const config = yield* ConfigStore
    const gauges = yield* Gauges
    return handlers.handle(
      "metrics",
      Effect.fnUntraced(function*() {
        if (!config.unsafeCurrent().metrics.public) {
          const request = yield* HttpServerRequest.HttpServerRequest
          const bearer = bearerToken(request.headers)
          if (bearer === undefined) return yield* missing
          yield* auth.authorize(bearer, addressOf(request))
        }
        yield* gauges.read
        return HttpServerResponse.text(yield* PrometheusMetrics.format(), { contentType })
      })
    )
  })
)
