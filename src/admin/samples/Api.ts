/**
 * Raw samples: replies of the upstream saved byte for byte, to inspect and replay (spec "raw-samples").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { optional } from "../../domain/schemas.ts"
import { bodies, completing, documented, finding, reading } from "../../http/documented.ts"
import { playedStyles, usualStyle } from "../../styles/Style.ts"
import { missingNodes } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

/** A reply of a style, whose contract describes it. */
const styleReply = [
  Schema.Json,
  HttpApiSchema.StreamSse({ events: Schema.Struct({ data: Schema.String }) })
] as const

/** Without `messages`, `message` is the one user turn. */
const CaptureSampleRequest = Schema.Struct({
  message: optional(Schema.String).annotate({ description: "The one user turn, without `messages`." }),
  messages: optional(Schema.Array(Schema.Json)).annotate({ description: "The conversation; or `message`." }),
  model: optional(Schema.String),
  stream: optional(Schema.Boolean),
  api_key: optional(Schema.String),
  sample_id: optional(Schema.String).annotate({ description: "Name of the folder of the sample; generated if absent." })
}).annotate({ identifier: "CaptureSampleRequest" })

export const SampleQueryItem = Schema.Struct({
  chain_key: Schema.String,
  /** First round first. */
  capture_ids: Schema.Array(Schema.String),
  round_count: Schema.Int,
  /** `completion`, or `continue` if the first round is no longer captured. */
  initial_label: Schema.String,
  /** Unix milliseconds of the first round. */
  created_at: Schema.Int,
  status: Schema.Int.annotate({ description: "HTTP status of the last round; 0 before it." }),
  model: Schema.NullOr(Schema.String).annotate({ description: "The model that the upstream was asked for." }),
  /** The beginning of the last user message. */
  request_preview: Schema.String,
  /** The beginning of the reply's text. */
  response_preview: Schema.String,
  /** The node that has it; absent unless several nodes share a store. Ids begin with it. */
  node: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "SampleQueryItem" })

/** Newest first. */
const SampleQueryReply = Schema.Struct({
  query: Schema.String,
  limit: Schema.Int,
  count: Schema.Int,
  items: Schema.Array(SampleQueryItem),
  ...missingNodes
})

/** Exactly one of `chain_key`, `capture_id` and `query` selects the chain; a query selects the newest match. */
export const SaveSampleRequest = Schema.Struct({
  sample_id: optional(Schema.String),
  chain_key: optional(Schema.String),
  capture_id: optional(Schema.String),
  query: optional(Schema.String)
}).annotate({ identifier: "SaveSampleRequest" })

export const SaveSampleReply = Schema.Struct({
  success: Schema.Boolean,
  sample_id: Schema.String,
  dir: Schema.String,
  sample_dir: Schema.String,
  meta_path: Schema.String,
  upstream_path: Schema.String,
  chain_key: Schema.String,
  capture_ids: Schema.Array(Schema.String),
  round_count: Schema.Int
})

/** A saved sample. */
const SavedSampleItem = Schema.Struct({
  sample_id: Schema.String,
  /** Unix milliseconds. */
  created_at: Schema.Int,
  /** The model of its request; of one that was saved from the captures, the model that the upstream was asked for. */
  model: Schema.NullOr(Schema.String),
  status: Schema.Int.annotate({ description: "HTTP status of the last round; 0 before it." }),
  round_count: Schema.Int,
  /** Size of the recorded replies. */
  bytes: Schema.Int
}).annotate({ identifier: "SavedSample" })

/** Newest first. */
const SavedSamplesReply = Schema.Struct({ items: Schema.Array(SavedSampleItem) })

/** Body of a replay. */
const ReplaySampleRequest = Schema.Struct({
  sample_id: Schema.NonEmptyString,
  style: Schema.Literals(playedStyles),
  stream: optional(Schema.Boolean)
}).annotate({ identifier: "ReplaySampleRequest" })

const SampleRemoved = Schema.Struct({ success: Schema.Boolean })

export class AdminSamplesGroup extends HttpApiGroup.make("admin-samples").add(
  HttpApiEndpoint.get("list", "/admin/dev/raw-samples", { success: SavedSamplesReply }).annotateMerge(
    documented({ summary: "List saved samples", errors: reading })
  ),
  HttpApiEndpoint.post("replay", "/admin/dev/raw-samples/replay", {
    payload: ReplaySampleRequest,
    success: styleReply
  }).annotateMerge(documented({
    summary: "Replay a saved sample in a style",
    description: "The reply has the style's form; the sample replaces the upstream.",
    errors: [...finding, ...bodies],
    example: { sample_id: "a-sample", style: usualStyle, stream: false }
  })),
  HttpApiEndpoint.delete("remove", "/admin/dev/raw-samples/:sample_id", {
    params: { sample_id: Schema.NonEmptyString },
    success: SampleRemoved
  }).annotateMerge(documented({ summary: "Delete a saved sample", errors: finding })),
  HttpApiEndpoint.post("capture", "/admin/dev/raw-samples/capture", {
    payload: CaptureSampleRequest,
    success: styleReply
  }).annotateMerge(documented({
    summary: "Send a chat request and save the response of the upstream",
    description: "The reply is the chat completion's own, with `X-Gateway-Sample-*` headers.",
    errors: completing,
    mayBeEmpty: true,
    example: { message: "Hello", model: "upstream-chat", stream: false }
  })),
  HttpApiEndpoint.get("query", "/admin/dev/raw-samples/query", {
    query: { q: Schema.optionalKey(Schema.String), limit: Schema.optionalKey(Schema.FiniteFromString) },
    success: SampleQueryReply
  }).annotateMerge(documented({
    summary: "Search the captures for chains to save",
    errors: [...reading, "invalid_request"]
  })),
  HttpApiEndpoint.post("save", "/admin/dev/raw-samples/save", {
    payload: SaveSampleRequest,
    success: SaveSampleReply
  }).annotateMerge(documented({
    summary: "Save a captured chain as a sample",
    description: "Exactly one of `chain_key`, `capture_id` and `query` selects it.",
    errors: [...finding, ...bodies],
    example: { query: "Hello" }
  }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: raw samples") {}
