/**
 * Request records: who asked what, what went over both wires, and how it ended.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { apps } from "../../domain/clientIdentity.ts"
import { cacheResults, missReasons, moveCauses } from "../../domain/warmth.ts"
import { documented, finding, reading } from "../../http/documented.ts"
import { exclusionReasons } from "../../placement/reasons.ts"
import { requestSorts } from "../../recordings/requestSorts.ts"
import { recordedStyles } from "../../styles/Style.ts"
import { missingNodes, PageNumber } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

/** Counts are tokens. */
const RequestCache = Schema.Struct({
  /** All tokens of the prompt, of which the cache had `read`, and `written` are new in it. */
  prompt: Schema.Int,
  read: Schema.Int,
  written: Schema.Int,
  /** Those that should have come from the cache. */
  predicted: Schema.Int,
  /** `hit`: at least 80 % of the predicted ones were read; `miss`: none of them; `none`: nothing was predicted, and nothing was read. */
  result: Schema.Literals(cacheResults),
  /** The first one that applies; `null` for a hit. */
  reason: Schema.NullOr(Schema.Literals(missReasons)),
  /** The first element that differs from the turn before, if the prompt has `changed`: `tools[1]`, `system`, `messages[3]`. */
  at: Schema.NullOr(Schema.String),
  /** Why another account or target answered than the turn before, if the conversation has `moved`. */
  because: Schema.NullOr(Schema.Literals(moveCauses)),
  /** Seconds since the turn before, if the cache has `expired`. */
  age_s: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "RequestCache" })

/** A request in lists. Times are Unix milliseconds, durations milliseconds; unknown ones are `null`. */
export const RequestItem = Schema.Struct({
  id: Schema.String,
  /** The id in the response headers. */
  request_id: Schema.String,
  started_at: Schema.Int,
  style: Schema.String,
  /** The model as asked for, and the one that it resolved to. */
  model: Schema.NullOr(Schema.String),
  native_model: Schema.NullOr(Schema.String),
  stream: Schema.Boolean,
  /** The key's id, or `direct`. */
  key: Schema.String,
  /** The key's name; `null` without one. */
  key_name: Schema.NullOr(Schema.String),
  /** The client's address as `privacy.client_address` keeps it; absent if nothing is kept. */
  client: Schema.optionalKey(Schema.String),
  /** The program that called; absent where nothing called over HTTP. */
  app: Schema.optionalKey(Schema.Literals(apps)),
  /** Its session and agents as `privacy.sessions` keeps them; absent where the client names none. */
  session: Schema.optionalKey(Schema.String),
  agent: Schema.optionalKey(Schema.String),
  parent: Schema.optionalKey(Schema.String),
  /** The account of the last attempt; empty without one. */
  account: Schema.String,
  /** The target that answered, or the last one tried, as `upstream/model`; absent in a configuration of one upstream. */
  target: Schema.optionalKey(Schema.String),
  state: Schema.Literals(["queued", "upstream", "streaming", "done"]),
  outcome: Schema.Literals(["open", "ok", "failed", "cancelled"]),
  /** HTTP status. */
  status: Schema.NullOr(Schema.Int),
  /** Code of the error in the response, also of one within a stream. */
  error: Schema.NullOr(Schema.String),
  finish: Schema.NullOr(Schema.String),
  attempts: Schema.Int,
  failovers: Schema.Int,
  /** The request was a rehearsal; absent for any other. */
  rehearsal: Schema.optionalKey(Schema.Literal(true)),
  /** Tool calls of the reply. */
  calls: Schema.Int,
  queued_ms: Schema.NullOr(Schema.Finite),
  first_event_ms: Schema.NullOr(Schema.Finite),
  duration_ms: Schema.NullOr(Schema.Finite),
  usage: Schema.NullOr(Schema.Struct({
    prompt_tokens: Schema.Int,
    completion_tokens: Schema.Int,
    reasoning_tokens: Schema.Int
  })),
  /** The sum over all tries as a decimal number in the configured currency; `null` without a price, and until the request is over. */
  cost: Schema.NullOr(Schema.String),
  /** What the cache of its server was to the prompt; absent until the reply is over, and where no server has a cache. */
  prompt_cache: Schema.optionalKey(RequestCache),
  /** False if bodies are not recorded, or were dropped for newer ones. */
  bodies_kept: Schema.Boolean,
  /** The node that served it; absent unless several nodes share a store. Ids begin with it. */
  node: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "RequestItem" })

/** Sorted as asked for. */
const RequestList = Schema.Struct({
  enabled: Schema.Boolean,
  limit: Schema.Int,
  kept: Schema.Int,
  /** Bytes of all records. */
  bytes: Schema.Int,
  max_total_bytes: Schema.Int,
  items: Schema.Array(RequestItem),
  /** Cursor of the next, older page; `null` at the end. */
  next_cursor: Schema.NullOr(Schema.String),
  ...missingNodes
}).annotate({ identifier: "RequestList" })

/** The lines of an event as on the wire, or a whole body. */
const RequestFrame = Schema.Struct({
  /** Milliseconds since the request began. */
  at_ms: Schema.Finite,
  data: Schema.String
}).annotate({ identifier: "RequestFrame" })

const Headers = Schema.Record(Schema.String, Schema.String)

const Call = { id: Schema.String, name: Schema.String, arguments: Schema.String }

/** A reply put together from its frames, as far as they were recorded. */
const assembled = {
  /** `null` for styles whose replies are no conversation. */
  text: Schema.NullOr(Schema.String),
  /** `null` without reasoning. */
  reasoning: Schema.NullOr(Schema.String),
  calls: Schema.Array(Schema.Struct(Call)),
  /** Why the reply ended, as its side names it; `null` if it did not end. */
  finish: Schema.NullOr(Schema.String)
}

/** One try of a request at an upstream. */
const RequestTry = Schema.Struct({
  upstream: Schema.String,
  /** The model's id within the upstream. */
  model: Schema.String,
  /** Empty for a caller's own token. */
  account: Schema.String,
  /** The class of the failure; `null` for a try that answered or still runs. */
  cause: Schema.NullOr(Schema.String),
  /** The upstream's HTTP status, if it failed with one. */
  status: Schema.NullOr(Schema.Int),
  /** Milliseconds in the queue before it. */
  queued_ms: Schema.Finite,
  /** Milliseconds since the request began. */
  began_ms: Schema.Finite,
  /** Milliseconds up to the first event or failure; `null` while it waits for one. */
  took_ms: Schema.NullOr(Schema.Finite),
  /** Decimal number in the configured currency; `null` without a price, and until the request is over. */
  cost: Schema.NullOr(Schema.String)
}).annotate({ identifier: "RequestTry" })

/** What the last try costs that the upstream charges. Amounts are decimal numbers in the configured currency. */
const RequestBill = Schema.Struct({
  /** `null` without a price. */
  cost: Schema.NullOr(Schema.String),
  /** Whose figure counts: that of the configured prices, or the server's own. */
  source: Schema.Literals(["prices", "server"]),
  by_prices: Schema.NullOr(Schema.String),
  /** The day of the vendors' list that has the prices; `null` for an entry of `prices`. */
  listed: Schema.NullOr(Schema.String),
  by_server: Schema.NullOr(Schema.String),
  /** The bill by prices: the sum of all lines, rounded to 9 decimals, is `by_prices`. */
  lines: Schema.Array(Schema.Struct({
    unit: Schema.String,
    amount: Schema.Finite,
    /** The place of the price within its entry, which may be that of a unit that stands in; `null` without one. */
    price: Schema.NullOr(Schema.String),
    cost: Schema.String
  })),
  /** Units, tools and tiers without a price, with their amounts. */
  unpriced: Schema.Array(Schema.Struct({ unit: Schema.String, amount: Schema.Finite }))
}).annotate({ identifier: "RequestBill" })

/** One request with the bodies and frames of both sides, without credentials. */
export const RequestDetail = Schema.Struct({
  ...RequestItem.fields,
  request: Schema.Struct({
    method: Schema.String,
    path: Schema.String,
    headers: Headers,
    body: Schema.String,
    truncated: Schema.Boolean
  }),
  /** `null` before the body was decoded. */
  conversation: Schema.NullOr(Schema.Array(Schema.Struct({
    role: Schema.String,
    text: Schema.String,
    calls: Schema.Array(Schema.Struct(Call)),
    call_id: Schema.NullOr(Schema.String)
  }))),
  /** The tries in order. */
  tries: Schema.Array(RequestTry),
  /** The targets of its route that were left out, each with the reason as it was then. */
  excluded: Schema.Array(Schema.Struct({ target: Schema.String, reason: Schema.Literals(exclusionReasons) })),
  /** `null` until the request is over, and if no upstream charges it. */
  bill: Schema.NullOr(RequestBill),
  /** The fallback that served the request, and the limit that it exceeded, such as `day cost`; `null` without one. */
  fallback: Schema.NullOr(Schema.Struct({ model: Schema.String, limit: Schema.String })),
  /** The gateway's sentence of the error that the client received, with advice for operators; `null` without an error. */
  error_message: Schema.NullOr(Schema.String),
  /** Who has to act on the error; `null` without one. */
  fault: Schema.NullOr(Schema.Literals(["caller", "gateway", "upstream", "account"])),
  /** Rounds, oldest first. */
  upstream: Schema.Array(Schema.Struct({
    /** Empty if it is not captured. */
    capture_id: Schema.String,
    label: Schema.String,
    /** The protocol by which its frames are read. */
    protocol: Schema.String,
    attempt: Schema.Int,
    url: Schema.String,
    account: Schema.String,
    /** 0 while there is no reply. */
    status: Schema.Int,
    request_body: Schema.String,
    frames: Schema.Array(RequestFrame),
    truncated: Schema.Boolean
  })),
  /** The response to the client. */
  reply: Schema.NullOr(Schema.Struct({
    status: Schema.Int,
    headers: Headers,
    frames: Schema.Array(RequestFrame),
    truncated: Schema.Boolean,
    ...assembled
  })),
  /** The reply as the upstream sent it in the last try; `null` if it is not recorded or is no conversation. */
  upstream_reply: Schema.NullOr(Schema.Struct(assembled)),
  tool_calls: Schema.Array(Schema.Struct({ ...Call, at_ms: Schema.Finite })),
  /** Value of the header `server-timing`. */
  server_timing: Schema.NullOr(Schema.String),
  /** Paths of the request's fields that had no effect, and the number of those that are not named. */
  ignored: Schema.Array(Schema.String),
  ignored_more: Schema.Int
}).annotate({ identifier: "RequestDetail" })

const outcomes = ["open", "ok", "failed", "cancelled"] as const

/** An outcome, an HTTP status, or a class of statuses. */
const StatusFilter = Schema.Union([
  Schema.Literals(["", ...outcomes, "4xx", "5xx"]),
  Schema.String.check(Schema.isPattern(/^[1-5]\d\d$/, { message: "must be an outcome or an HTTP status" }))
])

/** Milliseconds as a whole number. */
const Millis = Schema.FiniteFromString.check(
  Schema.makeFilter((value) => Number.isSafeInteger(value) && value >= 0, {
    message: "must be a whole number of milliseconds"
  })
)

/** An amount in the configured currency. */
const Cost = Schema.String.check(
  Schema.isPattern(/^\d{1,12}(?:\.\d{1,9})?$/, { message: "must be a decimal number with at most 9 decimals" })
)

/** Filters of a list; a record must match all that are present, and an empty one counts as absent. */
const filters = {
  status: Schema.optionalKey(StatusFilter),
  style: Schema.optionalKey(Schema.Literals(["", ...recordedStyles])),
  outcome: Schema.optionalKey(Schema.Literals(["", ...outcomes])),
  key: Schema.optionalKey(Schema.String),
  model: Schema.optionalKey(Schema.String),
  app: Schema.optionalKey(Schema.Literals(["", ...apps])),
  session: Schema.optionalKey(Schema.String),
  account: Schema.optionalKey(Schema.String),
  code: Schema.optionalKey(Schema.String),
  prompt_cache: Schema.optionalKey(Schema.Literals(["", ...cacheResults, ...missReasons])),
  upstream: Schema.optionalKey(Schema.String),
  min_ms: Schema.optionalKey(Schema.Union([Schema.Literal(""), Millis])),
  cost_from: Schema.optionalKey(Schema.Union([Schema.Literal(""), Cost])),
  from: Schema.optionalKey(Schema.String),
  to: Schema.optionalKey(Schema.String),
  text: Schema.optionalKey(Schema.String)
}

const aboutFilters =
  "`key` (its name or id), `model` (as asked for or as it resolved), `account` and `code` (of the error) match parts of a " +
  "value in any case, and the whole value if it is in double quotes: `\"gpt-4o\"`. `style`, `outcome`, `upstream`, `app` and `session` are " +
  "exact; `prompt_cache` is a result or a reason of the prompt cache; `status` is an outcome, an HTTP status, or `4xx` or `5xx`. `min_ms` is the least duration, and `cost_from` the least cost. `from` and `to` (not " +
  "included) are RFC 3339 times, days, or Unix seconds or milliseconds. `text` searches the conversation and the reply where bodies " +
  "are kept. A record must match all filters."

/** A value of a facet, and the number of records that have it. */
const FacetValue = Schema.Struct({
  /** Filters exactly by this value; within double quotes for `key`, `model`, `account` and `code`. */
  value: Schema.String,
  /** The key's name; `null` without one, and in the other facets. */
  name: Schema.NullOr(Schema.String),
  count: Schema.Int
}).annotate({ identifier: "RequestFacetValue" })

const Facet = Schema.Array(FacetValue)

/** Counts of records. */
export const RequestFacets = Schema.Struct({
  /** Each counts the records that match all filters but its own, most frequent first, at most 50 values. */
  facets: Schema.Struct({
    key: Facet,
    /** A record counts as the model that was asked for, and as the one that it resolved to. */
    model: Facet,
    style: Facet,
    app: Facet,
    session: Facet,
    upstream: Facet,
    account: Facet,
    outcome: Facet,
    code: Facet,
    /** Reasons of turns that were no hit in the prompt cache. */
    prompt_cache: Facet,
    /** Values of `min_ms`. */
    slow: Facet
  }),
  /** Records that match all filters. */
  total: Schema.Int,
  kept: Schema.Int,
  /** False if `text` was searched in the newest records only. */
  complete: Schema.Boolean,
  ...missingNodes
}).annotate({ identifier: "RequestFacets" })

/** Counts of records by the time at which they began. Times are Unix milliseconds, durations milliseconds. */
const RequestHistogram = Schema.Struct({
  /** The time from which on records are kept; `null` without any. */
  kept_from: Schema.NullOr(Schema.Int),
  /** The length of a bucket. */
  bucket_ms: Schema.Int,
  /** The buckets from `from`, or else from `kept_from`, to `to`, or else now: 120 at most. */
  buckets: Schema.Array(Schema.Struct({
    at: Schema.Int,
    ok: Schema.Int,
    failed: Schema.Int,
    cancelled: Schema.Int,
    open: Schema.Int,
    /** The duration that 95 % of the requests that are over stay below; `null` without any. */
    p95_ms: Schema.NullOr(Schema.Int)
  })),
  /** False if `text` was searched in the newest records only. */
  complete: Schema.Boolean,
  ...missingNodes
}).annotate({ identifier: "RequestHistogram" })

/** A session of a client as the records have it. Times are Unix milliseconds. */
export const RecordedSession = Schema.Struct({
  key: Schema.String,
  /** Empty where nothing called over HTTP. */
  app: Schema.String,
  session: Schema.String,
  /** The models that were asked for, the last one first: at most 10. */
  models: Schema.Array(Schema.String),
  /** When the first request that is kept began, and when the last one ended or, if it runs, began. */
  from: Schema.Finite,
  to: Schema.Finite,
  /** Those that are kept. */
  requests: Schema.Int
}).annotate({ identifier: "RecordedSession" })

const RecordedSessions = Schema.Struct({
  /** The 1,000 with the newest requests. */
  sessions: Schema.Array(RecordedSession),
  /** False if `text` was searched in the newest records only, or there are more sessions. */
  complete: Schema.Boolean,
  ...missingNodes
}).annotate({ identifier: "RecordedSessions" })

const RequestsCleared = Schema.Struct({
  success: Schema.Boolean,
  ...missingNodes
})

export class AdminRequestsGroup extends HttpApiGroup.make("admin-requests").add(
  HttpApiEndpoint.get("list", "/admin/requests", {
    query: {
      cursor: Schema.optionalKey(Schema.String),
      limit: Schema.optionalKey(PageNumber),
      sort: Schema.optionalKey(Schema.Literals(["", ...requestSorts])),
      order: Schema.optionalKey(Schema.Literals(["", "asc", "desc"])),
      ...filters
    },
    success: RequestList
  }).annotateMerge(documented({
    summary: "List request records",
    description:
      "Newest first, or by `sort` in descending order (`order` asc: ascending). Of equal values the newer request comes first, and unknown " +
      "values come last. With `text` the list is newest first. " +
      `${aboutFilters} A page of a search may have fewer than \`limit\` records before the end.`,
    errors: [...reading, "invalid_request"]
  })),
  HttpApiEndpoint.get("facets", "/admin/requests/facets", {
    query: filters,
    success: RequestFacets
  }).annotateMerge(documented({
    summary:
      "Count request records by key, model, style, upstream, account, outcome, error code, reason of the prompt cache and duration",
    description: "With the filters of the list; each facet ignores its own filter.",
    errors: [...reading, "invalid_request"]
  })),
  HttpApiEndpoint.get("histogram", "/admin/requests/histogram", {
    query: filters,
    success: RequestHistogram
  }).annotateMerge(documented({
    summary: "Count request records by the time at which they began",
    description: "With the filters of the list.",
    errors: [...reading, "invalid_request"]
  })),
  HttpApiEndpoint.get("sessions", "/admin/requests/sessions", {
    query: filters,
    success: RecordedSessions
  }).annotateMerge(documented({
    summary: "List the sessions of request records",
    description:
      "With the filters of the list. Each has its models, and its exact times as far as its requests are kept.",
    errors: [...reading, "invalid_request"]
  })),
  HttpApiEndpoint.get("get", "/admin/requests/:id", {
    params: { id: Schema.NonEmptyString },
    success: RequestDetail
  }).annotateMerge(documented({
    summary: "Read the record of one request, with the frames of both sides",
    description: "By the id of the record, or by that of the request: its newest record.",
    errors: finding
  })),
  HttpApiEndpoint.delete("clear", "/admin/requests", { success: RequestsCleared }).annotateMerge(
    documented({ summary: "Delete the records of finished requests", errors: reading })
  )
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: request records") {}
