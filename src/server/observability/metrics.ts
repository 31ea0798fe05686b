/**
 * The handler of `GET /metrics`, in the Prometheus text format. It requires the admin key unless `metrics.public` is true.
 */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Metric from "effect/Metric"
import * as PrometheusMetrics from "effect/observability/PrometheusMetrics"
import { type AccountFacts, Accounts } from "../../accounts/Accounts.ts"
import { AdminAuth } from "../../admin/auth/AdminAuth.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { apiId } from "../../http/reply.ts"
import { addressOf, bearerToken } from "../../http/RequestContext.ts"
import { MetricsGroup } from "../OperatorApi.ts"
import { Gauges } from "./gauges.ts"

/** Maximum number of accounts with their own series. */
export const mostAccounts = 1_000

/**
 * Gauges of the first accounts by hash: whether each is in rotation, and its slots in use. Formatted on request, because
 * accounts come and go and a registry never drops a series.
 */
export const accountMetrics = (facts: ReadonlyArray<AccountFacts>): string => {
  if (facts.length === 0) return ""
  const family = (name: string, help: string, valueOf: (account: AccountFacts) => number) => [
    `# HELP ${name} ${help}`,
    `# TYPE ${name} gauge`,
    ...facts.slice(0, mostAccounts).map((account) => `${name}{account="${account.hash}"} ${valueOf(account)}`)
  ]
  return [
    ...family(
      "gateway_account_ready",
      "Whether an account is in rotation",
      ({ disabled, health }) => health === "ready" && !disabled ? 1 : 0
    ),
    ...family("gateway_account_slots_in_use", "Slots of an account that are taken", ({ inUse }) => inUse),
    ""
  ].join("\n")
}

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
        if (!config.now().metrics.public) {
          const request = yield* HttpServerRequest.HttpServerRequest
          const bearer = bearerToken(request.headers)
          if (bearer === undefined) return yield* missing
          yield* auth.authorize(bearer, addressOf(request))
        }
        yield* gauges.read
        const listed = config.now().accounts.slice(0, mostAccounts).map(({ identifier }) => identifier)
        const text = (yield* formatted).replace(/\n*$/, "\n")
        return HttpServerResponse.text(text + accountMetrics(yield* accounts.describe(listed)), { contentType })
      })
    )
  })
)
