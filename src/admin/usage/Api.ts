/**
 * Usage of keys, models and accounts: rows and sums, as JSON and CSV.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { documented, reading } from "../../http/documented.ts"
import { percentileNames } from "../../usage/Times.ts"
import { measureNames } from "../../usage/UsageEntry.ts"
import { groupings } from "../../usage/UsageQuery.ts"
import { aboutSort, sortQuery } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

/** The store of usage. */
export const StoreView = Schema.Struct({
  kind: Schema.Literals(["sqlite", "memory", "redis", "off"]),
  persistent: Schema.Boolean,
  /** Why usage is in memory only, or the current error. */
  detail: Schema.NullOr(Schema.String)
}).annotate({ identifier: "UsageStore" })

const percentile = (description: string) =>
  Schema.NullOr(Schema.Finite).annotate({
    description: `${description}, within 5 percent; \`null\` without any.`
  })

const measures = {
  ...Object.fromEntries(measureNames.map((name) => [name, Schema.Int] as const)) as {
    readonly [Name in (typeof measureNames)[number]]: typeof Schema.Int
  },
  cost: Schema.String.annotate({
    description: "Decimal number in `currency`: the sum of what each request cost with the prices of its time."
  }),
  unpriced_requests: Schema.Int.annotate({
    description: "Counted requests for whose model no price was configured. `cost` does not include them."
  }),
  cache_write_tokens: Schema.Int.annotate({ description: "Tokens of prompts that were written to caches." }),
  predicted_tokens: Schema.Int.annotate({
    description:
      "Tokens of prompts that should have come from caches: those of a beginning that the same account has answered."
  }),
  prompt_cache_misses: Schema.Int.annotate({
    description: "Requests of whose prompts nothing came from the cache although tokens were predicted."
  }),
  wasted_cost: Schema.String.annotate({
    description:
      "The part of `cost` of which the clients saw nothing: tries that failed after the server had worked for them."
  }),
  prompt_cache_hit_rate: Schema.NullOr(Schema.Finite).annotate({
    description: "`cached_tokens` by `prompt_tokens`, from 0 to 1; `null` without a prompt."
  }),
  first_event_p50_ms: percentile("Half of the replies had their first event within these milliseconds"),
  first_event_p95_ms: percentile("95 of 100 replies had their first event within these milliseconds"),
  duration_p95_ms: percentile("95 of 100 requests were over within these milliseconds"),
  queue_p95_ms: percentile("95 of 100 requests waited for a slot for at most these milliseconds"),
  tokens_per_second_p50: percentile("Half of the replies had at most these tokens a second after their first event"),
  /** Errors by code. */
  errors: Schema.Record(Schema.String, Schema.Int)
}

export const UsageMeasures = Schema.Struct(measures).annotate({ identifier: "UsageMeasures" })

/** The fields that rows are grouped by, and the measures. */
export const UsageRowView = Schema.Struct({
  key: Schema.optionalKey(Schema.String).annotate({ description: "A key's id, `direct`, `embedded` or `none`." }),
  key_name: Schema.optionalKey(Schema.NullOr(Schema.String)),
  model: Schema.optionalKey(Schema.String),
  account: Schema.optionalKey(Schema.String).annotate({
    description: "Hash of the account, as in the log, or `none`."
  }),
  account_identifier: Schema.optionalKey(Schema.NullOr(Schema.String)),
  style: Schema.optionalKey(Schema.String),
  upstream: Schema.optionalKey(Schema.String).annotate({
    description: "The upstream that answered, or the last one tried; `none` for requests that reached no upstream."
  }),
  target: Schema.optionalKey(Schema.String).annotate({
    description: "The upstream and its model, as `upstream/model`, or `none`."
  }),
  app: Schema.optionalKey(Schema.String).annotate({
    description: "The program that called, or `none`."
  }),
  session: Schema.optionalKey(Schema.String).annotate({
    description: "The session that the client named, within its key; what `privacy.sessions` keeps of it, or `none`."
  }),
  agent: Schema.optionalKey(Schema.String).annotate({ description: "The agent of the session, or `none`." }),
  parent: Schema.optionalKey(Schema.String).annotate({ description: "The agent that started it, or `none`." }),
  label: Schema.optionalKey(Schema.String).annotate({
    description: "The label that the keys have now; `none` for keys without one and for removed keys."
  }),
  hour: Schema.optionalKey(Schema.String).annotate({
    description: "Start of the hour in UTC; after 90 days usage is kept by day, at hour 00."
  }),
  day: Schema.optionalKey(Schema.String),
  ...measures
}).annotate({ identifier: "UsageRow" })

export const UsageReply = Schema.Struct({
  from: Schema.String,
  to: Schema.String,
  by: Schema.Array(Schema.Literals(groupings)),
  zone: Schema.String.annotate({ description: "The time zone of `day`." }),
  utc_days_before: Schema.NullOr(Schema.String).annotate({
    description: "Before this time usage is kept by days of UTC, whatever the zone."
  }),
  currency: Schema.NullOr(Schema.String).annotate({
    description: "The configured currency of every `cost`; amounts are never converted."
  }),
  rows: Schema.Array(UsageRowView),
  totals: UsageMeasures,
  truncated: Schema.Boolean,
  store: StoreView
}).annotate({ identifier: "Usage" })

/** What rows can be sorted by: every measure. */
export const usageSorts = [
  ...measureNames,
  "cost",
  "unpriced_requests",
  "cache_write_tokens",
  "predicted_tokens",
  "prompt_cache_misses",
  "wasted_cost",
  "prompt_cache_hit_rate",
  ...percentileNames
] as const

const text = Schema.optionalKey(Schema.String)

const query = {
  from: text,
  to: text,
  by: text,
  key: text,
  model: text,
  account: text,
  style: text,
  upstream: text,
  target: text,
  app: text,
  session: text,
  agent: text,
  parent: text,
  label: text,
  limit: text,
  zone: text,
  ...sortQuery(usageSorts)
}

export class AdminUsageGroup extends HttpApiGroup.make("admin-usage").add(
  HttpApiEndpoint.get("query", "/admin/usage", { query, success: UsageReply }).annotateMerge(documented({
    summary:
      "Read usage: sums, and rows by key, model, account, style, hour, day, upstream, target, app, session, agent, parent or label",
    description:
      "`from` and `to` are RFC 3339 times, days, or Unix seconds or milliseconds, rounded to hours; the last 24 hours by default. " +
      "`zone`, such as `Europe/Berlin`, is the zone of days; an hour is of the day in which it begins. " +
      "`key` takes names or ids, `account` identifiers or hashes, `label` labels, and all three lists with commas. " +
      `${aboutSort} The list's own order is by time, then by falling \`total_tokens\`. ` +
      "`session`, `agent` and `parent` go with `key`, `label`, `app`, `hour` and `day`, and are kept for `usage.session_days`.",
    errors: [...reading, "invalid_request"]
  })),
  HttpApiEndpoint.get("csv", "/admin/usage.csv", {
    query,
    success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/csv" }))
  }).annotateMerge(documented({
    summary: "Read usage as CSV",
    description: "`x-truncated: true` means that rows are missing.",
    errors: [...reading, "invalid_request"]
  }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: usage") {}
