/**
 * Records of requests: who asked what, what went over both wires, and how it ended.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { documented, finding, reading } from "../../http/documented.ts"
import { recordedStyles } from "../../styles/names.ts"
import { AdminEdge } from "../edges.ts"
import { PageNumber } from "../query.ts"

/** A request as lists show it. Times are Unix milliseconds, durations milliseconds; `null` while not known. */
export const RequestItem = Schema.Struct({
  id: Schema.String,
  /** The id that the caller was told. */
  request_id: Schema.String,
  started_at: Schema.Int,
  style: Schema.String,
  /** The model as asked for, and the one that it resolved to. */
  model: Schema.NullOr(Schema.String),
  native_model: Schema.NullOr(Schema.String),
  stream: Schema.Boolean,
  /** The key's id, or `direct`. */
  key: Schema.String,
  /** The account of the last attempt; empty without one. */
  account: Schema.String,
  state: Schema.Literals(["queued", "upstream", "streaming", "done"]),
  outcome: Schema.Literals(["open", "ok", "failed", "cancelled"]),
  /** HTTP status. */
  status: Schema.NullOr(Schema.Int),
  /** Code of the error that the caller was told, in the stream too. */
  error: Schema.NullOr(Schema.String),
  finish: Schema.NullOr(Schema.String),
  attempts: Schema.Int,
  failovers: Schema.Int,
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
  /** False where bodies are not recorded, or were forgotten for newer ones. */
  bodies_kept: Schema.Boolean,
  /** The node that served it, where several share a store; ids begin with it. */
  node: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "RequestItem" })

/** Newest first. */
export const RequestList = Schema.Struct({
  enabled: Schema.Boolean,
  limit: Schema.Int,
  kept: Schema.Int,
  /** Bytes that all records keep together. */
  bytes: Schema.Int,
  max_total_bytes: Schema.Int,
  items: Schema.Array(RequestItem),
  /** For what is older; `null` at the end. */
  next_cursor: Schema.NullOr(Schema.String),
  /** Nodes that did not answer, where several share a store. */
  nodes_missing: Schema.optionalKey(Schema.Array(Schema.String))
}).annotate({ identifier: "RequestList" })

/** An event with its lines as they went over the wire, or a whole body. */
export const RequestFrame = Schema.Struct({
  /** Milliseconds since the request began. */
  at_ms: Schema.Finite,
  data: Schema.String
}).annotate({ identifier: "RequestFrame" })

const Headers = Schema.Record(Schema.String, Schema.String)

const Call = { id: Schema.String, name: Schema.String, arguments: Schema.String }

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
  /** Rounds, first first. */
  upstream: Schema.Array(Schema.Struct({
    /** Empty where it is not captured. */
    capture_id: Schema.String,
    label: Schema.String,
    attempt: Schema.Int,
    url: Schema.String,
    account: Schema.String,
    /** 0 while there is no reply. */
    status: Schema.Int,
    request_body: Schema.String,
    frames: Schema.Array(RequestFrame),
    truncated: Schema.Boolean
  })),
  /** What went to the client. */
  reply: Schema.NullOr(Schema.Struct({
    status: Schema.Int,
    headers: Headers,
    frames: Schema.Array(RequestFrame),
    truncated: Schema.Boolean
  })),
  tool_calls: Schema.Array(Schema.Struct({ ...Call, at_ms: Schema.Finite })),
  /** The header's value. */
  server_timing: Schema.NullOr(Schema.String)
}).annotate({ identifier: "RequestDetail" })

/** `open`, `ok`, `failed`, `cancelled`, an HTTP status, or a class of them. */
const StatusFilter = Schema.Union([
  Schema.Literals(["", "open", "ok", "failed", "cancelled", "4xx", "5xx"]),
  Schema.String.check(Schema.isPattern(/^[1-5]\d\d$/, { message: "must be an outcome or an HTTP status" }))
])

export const RequestsCleared = Schema.Struct({
  success: Schema.Boolean,
  /** Nodes that did not answer and still have theirs, where several share a store. */
  nodes_missing: Schema.optionalKey(Schema.Array(Schema.String))
})

export class AdminRequestsGroup extends HttpApiGroup.make("admin-requests").add(
  HttpApiEndpoint.get("list", "/admin/requests", {
    query: {
      cursor: Schema.optionalKey(Schema.String),
      limit: Schema.optionalKey(PageNumber),
      status: Schema.optionalKey(StatusFilter),
      style: Schema.optionalKey(Schema.Literals(["", ...recordedStyles])),
      model: Schema.optionalKey(Schema.String),
      key: Schema.optionalKey(Schema.String),
      account: Schema.optionalKey(Schema.String)
    },
    success: RequestList
  }).annotateMerge(documented({
    summary: "List records of requests",
    description:
      "Newest first. `status` is an outcome, an HTTP status, or `4xx` or `5xx`; `model` is the model as asked for " +
      "or as it resolved. Filters are exact, and all of them must fit.",
    errors: [...reading, "invalid_request"]
  })),
  HttpApiEndpoint.get("get", "/admin/requests/:id", {
    params: { id: Schema.NonEmptyString },
    success: RequestDetail
  }).annotateMerge(documented({
    summary: "Read the record of one request, both sides with their frames",
    description: "By the record's id, or by the request's id: the newest record that has it.",
    errors: finding
  })),
  HttpApiEndpoint.delete("clear", "/admin/requests", { success: RequestsCleared }).annotateMerge(
    documented({ summary: "Forget the records of requests that are over", errors: reading })
  )
).middleware(AdminEdge).annotate(OpenApi.Description, "Operators: records of requests") {}
