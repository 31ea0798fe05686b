/**
 * Packet captures: requests to the upstream and its responses (spec "Packet capture").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { FailureCause } from "../../domain/FailureCause.ts"
import { documented, finding, reading } from "../../http/documented.ts"
import { missingNodes, Switch } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

/** One round with the upstream, without credentials. */
export const CaptureItem = Schema.Struct({
  id: Schema.String,
  /** Unix seconds. */
  created_at: Schema.Int,
  /** `completion` or `continue`. */
  label: Schema.String,
  url: Schema.String,
  /** The upstream's name; absent in a configuration of one upstream. */
  upstream: Schema.optionalKey(Schema.String),
  /** Empty for a caller's own token. */
  account_id: Schema.String,
  /** 0 while there is no reply. */
  status_code: Schema.Int,
  request_body: Schema.String,
  response_body: Schema.String,
  response_truncated: Schema.Boolean,
  /** Identifies the upstream session; all rounds of one reply have the same. */
  chain_key: Schema.String,
  /** Why the round failed, if known. */
  cause: Schema.optionalKey(FailureCause),
  /** The node that has it; absent unless several nodes share a store. Ids begin with it. */
  node: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "Capture" })

const { request_body: _request, response_body: _response, ...head } = CaptureItem.fields

/** A round without its bodies. */
export const CaptureSummary = Schema.Struct({
  ...head,
  request_bytes: Schema.Int,
  response_bytes: Schema.Int,
  request_id: Schema.String,
  /** The round is over. */
  closed: Schema.Boolean
}).annotate({ identifier: "CaptureSummary" })

/** One round with its bodies. */
const CaptureDetail = Schema.Struct({
  ...CaptureItem.fields,
  request_id: Schema.String,
  closed: Schema.Boolean
}).annotate({ identifier: "CaptureDetail" })

/** Newest first; with `summary=true` without bodies. */
const CapturesReply = Schema.Struct({
  enabled: Schema.Boolean,
  limit: Schema.Int,
  max_body_bytes: Schema.Int,
  items: Schema.Union([Schema.Array(CaptureSummary), Schema.Array(CaptureItem)]),
  ...missingNodes
}).annotate({ identifier: "Captures" })

const CapturesCleared = Schema.Struct({
  success: Schema.Literal(true),
  detail: Schema.Literal("capture logs cleared"),
  ...missingNodes
})

export class AdminCapturesGroup extends HttpApiGroup.make("admin-captures").add(
  HttpApiEndpoint.get("list", "/admin/dev/captures", {
    query: { summary: Schema.optionalKey(Switch) },
    success: CapturesReply
  }).annotateMerge(documented({
    summary: "List captured exchanges with the upstream",
    description: "With `summary=true` the items have sizes instead of bodies.",
    errors: [...reading, "invalid_request"]
  })),
  HttpApiEndpoint.get("get", "/admin/dev/captures/:id", {
    params: { id: Schema.NonEmptyString },
    success: CaptureDetail
  }).annotateMerge(documented({ summary: "Read one captured exchange", errors: finding })),
  HttpApiEndpoint.delete("clear", "/admin/dev/captures", { success: CapturesCleared }).annotateMerge(
    documented({ summary: "Clear the captures", errors: reading })
  )
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: packet captures") {}
