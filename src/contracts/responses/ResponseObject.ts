/**
 * Schema of the response object: the reply to a request without `stream`, the stored response, and a field of a stream's
 * first and last events. It has every field that the vendor's SDK requires.
 */
import * as Schema from "effect/Schema"
import { optional, ParsedObject } from "../../domain/schemas.ts"
import { OutputItem } from "./items.ts"

/** A declared function, echoed with every field that the SDK requires. */
const FunctionTool = Schema.Struct({
  type: Schema.Literal("function"),
  name: Schema.String,
  description: optional(Schema.String),
  parameters: Schema.NullOr(ParsedObject),
  strict: Schema.NullOr(Schema.Boolean)
})

/** `text` of a request. */
export const TextFormat = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("json_schema"),
    name: Schema.String,
    description: optional(Schema.String),
    schema: ParsedObject,
    strict: optional(Schema.Boolean)
  }),
  Schema.Struct({ type: Schema.Literals(["text", "json_object"]) })
])

export const ResponseUsage = Schema.Struct({
  input_tokens: Schema.Int,
  input_tokens_details: Schema.Struct({ cached_tokens: Schema.Int, cache_write_tokens: Schema.Int }),
  output_tokens: Schema.Int,
  output_tokens_details: Schema.Struct({ reasoning_tokens: Schema.Int }),
  total_tokens: Schema.Int
}).annotate({ identifier: "ResponseUsage" })

/** The error of a failed response; `code` is one of the gateway's error codes. */
export const ResponseError = Schema.Struct({
  code: Schema.String,
  message: Schema.String,
  type: Schema.String,
  param: Schema.NullOr(Schema.String)
})

/** The fields of a response that follow from the request alone. */
export const ResponseEcho = Schema.Struct({
  access_programs: Schema.Null,
  background: Schema.Literal(false),
  instructions: Schema.NullOr(Schema.String),
  max_output_tokens: Schema.NullOr(Schema.Int),
  max_tool_calls: Schema.Null,
  metadata: Schema.Record(Schema.String, Schema.String),
  model: Schema.String,
  parallel_tool_calls: Schema.Boolean,
  previous_response_id: Schema.NullOr(Schema.String),
  prompt_cache_key: Schema.NullOr(Schema.String),
  reasoning: Schema.Struct({ effort: Schema.NullOr(Schema.String), summary: Schema.NullOr(Schema.String) }),
  safety_identifier: Schema.NullOr(Schema.String),
  presence_penalty: Schema.Finite,
  frequency_penalty: Schema.Finite,
  service_tier: Schema.String,
  store: Schema.Boolean,
  temperature: Schema.Finite,
  text: Schema.Struct({ format: TextFormat, verbosity: Schema.optionalKey(Schema.String) }),
  tool_choice: Schema.Union([Schema.Literals(["auto", "none", "required"]), ParsedObject]),
  tools: Schema.Array(Schema.Union([FunctionTool, ParsedObject])),
  top_logprobs: Schema.Int,
  top_p: Schema.Finite,
  truncation: Schema.Literal("disabled")
})

/** A response. */
export const ResponseObject = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("response"),
  /** Unix seconds. */
  created_at: Schema.Int,
  status: Schema.Literals(["in_progress", "completed", "incomplete", "failed", "cancelled"]),
  completed_at: Schema.NullOr(Schema.Int),
  error: Schema.NullOr(ResponseError),
  incomplete_details: Schema.NullOr(
    Schema.Struct({ reason: Schema.Literals(["max_output_tokens", "content_filter"]) })
  ),
  output: Schema.Array(OutputItem),
  /** All text of the output's messages. */
  output_text: Schema.String,
  /** `null` until the upstream has reported it. */
  usage: Schema.NullOr(ResponseUsage),
  ...ResponseEcho.fields
}).annotate({ identifier: "Response" })
