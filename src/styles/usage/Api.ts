/**
 * Contract of a key's own usage: its holder reads it with the key.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { UsageMeasures, UsageRowView } from "../../admin/usage/Api.ts"
import { Spent, SpentCost } from "../../domain/schemas.ts"
import { windowNames } from "../../domain/windowNames.ts"
import { documented, reading } from "../../http/documented.ts"
import { UncountedMiddleware } from "../shared/middleware.ts"

const used = {
  requests: Schema.Int.annotate({ description: "Requests that count for limits." }),
  tokens: Schema.Int,
  cost: Schema.String.annotate({ description: "Decimal number in `currency`." })
}

const UsedView = Schema.Struct(used).annotate({ identifier: "KeyUsed" })

/** What a key's own usage can be grouped by. */
export const ownGroupings = ["app", "session", "agent", "parent", "hour", "day"] as const

/** The usage of the caller's key. */
export const OwnUsage = Schema.Struct({
  key: Schema.Struct({ name: Schema.NullOr(Schema.String) }),
  currency: Schema.NullOr(Schema.String),
  today: UsedView.annotate({ description: "The current day in UTC, with what running requests have reserved." }),
  month: UsedView.annotate({ description: "The current month in UTC." }),
  limits: Schema.Array(Schema.Struct({
    window: Schema.Literals(windowNames),
    requests: Spent,
    tokens: Spent,
    cost: SpentCost,
    strict: Schema.Boolean.annotate({ description: "Requests reserve the most that they can use." }),
    fallback: Schema.NullOr(Schema.String).annotate({
      description: "The model that serves requests beyond the limit."
    }),
    resets_at: Schema.String
  })),
  history: Schema.optionalKey(Schema.Struct({
    from: Schema.String,
    to: Schema.String,
    by: Schema.Array(Schema.Literals(ownGroupings)),
    rows: Schema.Array(UsageRowView),
    totals: UsageMeasures,
    truncated: Schema.Boolean
  })).annotate({ description: "The key's requests of a time; with a query alone." })
}).annotate({ identifier: "OwnUsage" })

const text = Schema.optionalKey(Schema.String)

export class UsageGroup extends HttpApiGroup.make("usage").add(
  HttpApiEndpoint.get("own", "/v1/usage", {
    query: { from: text, to: text, by: text, session: text, limit: text },
    success: OwnUsage
  }).annotateMerge(documented({
    summary: "Read the usage of the client's key",
    description:
      "Today, this month, and the key's limits with what is left. With `by` the reply has `history` too: rows by app, session, agent, " +
      "parent, hour or day, of the last 24 hours unless `from` and `to` say otherwise. Only a configured gateway key may ask.",
    errors: [...reading, "invalid_request", "store_unavailable"]
  }))
).middleware(UncountedMiddleware).annotate(OpenApi.Description, "Usage of the client's key") {}
