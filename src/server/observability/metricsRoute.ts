/**
 * `GET /metrics` at work, in the Prometheus text format; needs the admin key unless `metrics.public` is true.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Metric from "effect/Metric"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { Accounts } from "../../accounts/Accounts.ts"
import { AdminAuth } from "../../admin/auth/AdminAuth.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { addressOf } from "../../http/addressOf.ts"
import { bearerToken } from "../../http/credential.ts"
import { apiId } from "../../http/reply.ts"
import { accountMetrics, mostAccounts } from "./accountMetrics.ts"
import { Gauges } from "./gauges.ts"
import { MetricsGroup } from "./metricsApi.ts"

const contentType = "text/plain; version=0.0.4; charset=utf-8"

const missing = gatewayError("authentication_failed", "Send Authorization: Bearer <admin key>, or set metrics.public")

export const MetricsHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(MetricsGroup),
  "metrics",
  Effect.fnUntraced(function*(handlers) {
    const auth = yield* AdminAuth
    const config = yield* ConfigStore
    const gauges = yield* Gauges
    const accounts = yield* Accounts
    const formatted = Effect.provideService(
      PrometheusMetrics.format(),
      Metric.MetricRegistry,
      yield* Metric.MetricRegistry
    )
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
        const listed = config.unsafeCurrent().accounts.slice(0, mostAccounts).map(({ identifier }) => identifier)
        const text = (yield* formatted).replace(/\n*$/, "\n")
        return HttpServerResponse.text(text + accountMetrics(yield* accounts.describe(listed)), { contentType })
      })
    )
  })
)
