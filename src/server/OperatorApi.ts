/**
 * The contract for operators: health, metrics and the admin API. Importable without the server.
 */
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { AdminAccountsGroup } from "../admin/accounts/Api.ts"
import { AdminAuthGroup, AdminSessionGroup } from "../admin/auth/Api.ts"
import { AdminCapturesGroup } from "../admin/captures/Api.ts"
import { AdminConfigGroup } from "../admin/config/Api.ts"
import { AdminEventsGroup } from "../admin/events/Api.ts"
import { AdminChangesGroup } from "../admin/history/Api.ts"
import { AdminHostGroup } from "../admin/host/Api.ts"
import { AdminKeysGroup } from "../admin/keys/Api.ts"
import { AdminOpenMiddleware } from "../admin/middleware.ts"
import { AdminMinutesGroup } from "../admin/minutes/Api.ts"
import { AdminModelsGroup } from "../admin/models/Api.ts"
import { AdminPricesGroup } from "../admin/prices/Api.ts"
import { AdminRequestsGroup } from "../admin/requests/Api.ts"
import { AdminRoutesGroup } from "../admin/routes/Api.ts"
import { AdminSamplesGroup } from "../admin/samples/Api.ts"
import { AdminSettingsGroup } from "../admin/settings/Api.ts"
import { AdminNodesGroup, AdminSelfTestGroup, AdminVersionGroup } from "../admin/system/Api.ts"
import { AdminTokensGroup } from "../admin/tokens/Api.ts"
import { AdminUpstreamsGroup } from "../admin/upstreams/Api.ts"
import { AdminUsageGroup } from "../admin/usage/Api.ts"
import { AdminWebhooksGroup } from "../admin/webhooks/Api.ts"
import { documented, reading } from "../http/documented.ts"
import { apiId } from "../http/reply.ts"
import { OpenAiPublicMiddleware } from "../styles/shared/middleware.ts"

/** The admin groups of the gateway's API. */
export class AdminApi extends HttpApi.make(apiId).add(
  AdminAuthGroup,
  AdminSessionGroup,
  AdminConfigGroup,
  AdminSettingsGroup,
  AdminKeysGroup,
  AdminUsageGroup,
  AdminMinutesGroup,
  AdminChangesGroup,
  AdminTokensGroup,
  AdminAccountsGroup,
  AdminUpstreamsGroup,
  AdminModelsGroup,
  AdminPricesGroup,
  AdminRoutesGroup,
  AdminSelfTestGroup,
  AdminCapturesGroup,
  AdminSamplesGroup,
  AdminRequestsGroup,
  AdminEventsGroup,
  AdminHostGroup,
  AdminVersionGroup,
  AdminNodesGroup,
  AdminWebhooksGroup
) {}

/** The counts of accounts inform only: they do not decide readiness. */
const Ready = Schema.Struct({
  status: Schema.Literal("ready"),
  accounts: Schema.Struct({ ready: Schema.Int, total: Schema.Int }),
  detail: Schema.optionalKey(Schema.String).annotate({
    description: "What is wrong with how the shared store is set up, and with the servers of upstreams."
  })
})

export class HealthGroup extends HttpApiGroup.make("health").add(
  HttpApiEndpoint.get("healthz", "/healthz", { success: Schema.Struct({ status: Schema.Literal("ok") }) })
    .annotateMerge(documented({ summary: "Whether the process answers", errors: [] })),
  HttpApiEndpoint.get("readyz", "/readyz", { success: Ready }).annotateMerge(
    documented({ summary: "Whether the gateway takes requests", errors: ["shutting_down"] })
  )
).middleware(OpenAiPublicMiddleware).annotate(OpenApi.Description, "Health probes") {}

export class MetricsGroup extends HttpApiGroup.make("metrics").add(
  HttpApiEndpoint.get("metrics", "/metrics", {
    success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain" }))
  }).annotateMerge(documented({
    summary: "Metrics in the Prometheus text format",
    description: "Needs no credential where `metrics.public` is true.",
    access: "key",
    errors: [...reading, "rate_limit_exceeded", "shutting_down"]
  }))
).middleware(AdminOpenMiddleware).annotate(OpenApi.Description, "Metrics") {}

/** The endpoints for operators and their tools. */
export class OperatorApi extends HttpApi.make(apiId).add(HealthGroup, MetricsGroup).addHttpApi(AdminApi) {}
