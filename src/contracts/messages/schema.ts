/**
 * Schemas of the messages contract: request, reply, stream and lists (spec "Messages style").
 */
import * as Schema from "effect/Schema"
import { optional, ParsedObject } from "../../domain/schemas.ts"
import { reads, request } from "../shared/requestSchema.ts"
import { serverWords } from "../shared/thinking.ts"
import { ContentBlock, SystemBlock } from "./contentBlocks.ts"
import { messagesErrors } from "./errors.ts"
import { customToolFields, messageFields, otherKind, outputSettings, thinkingSettings, toolKind } from "./family.ts"
import { factFields } from "./modelFields.ts"

/** A message of the conversation. */
export const MessageParam = Schema.Struct({
  role: Schema.Literals(["user", "assistant", "system"]),
  content: Schema.Union([Schema.String, Schema.Array(ContentBlock)])
}).annotate({ identifier: "MessageParam", ...request({ fields: messageFields }) })

/** A declared tool, or one of the vendor's tools: it has another `type`. */
export const MessagesTool = Schema.Struct({
  type: optional(Schema.String),
  name: optional(Schema.String),
  description: optional(Schema.String),
  input_schema: optional(ParsedObject),
  strict: optional(Schema.Boolean),
  /** The size of a computer's display. */
  display_width_px: optional(Schema.Finite),
  display_height_px: optional(Schema.Finite)
}).annotate({
  identifier: "MessagesTool",
  ...request({
    kinds: {
      by: toolKind,
      rows: { custom: reads(["type", "name", "description", "input_schema", "strict"], customToolFields), ...otherKind }
    }
  })
})

/** `tool_choice` of a messages request. */
export const MessagesToolChoice = Schema.Struct({
  type: Schema.Literals(["auto", "any", "tool", "none"]),
  name: optional(Schema.String),
  disable_parallel_tool_use: optional(Schema.Boolean)
})

const OutputFormat = Schema.Struct({ type: Schema.Literal("json_schema"), schema: ParsedObject })

const conversationFields = {
  model: Schema.NonEmptyString.annotate({
    description: "A model of the Messages API, or a name that the other APIs accept."
  }),
  messages: Schema.NonEmptyArray(MessageParam).annotate(request({ counted: "turns" })),
  system: optional(Schema.Union([Schema.String, Schema.Array(SystemBlock)])).annotate({
    description: "System prompt.",
    ...request({ counted: "parts" })
  }),
  tools: optional(Schema.Array(MessagesTool)).annotate({ description: "Tools that the model may use." }),
  tool_choice: optional(MessagesToolChoice),
  ...serverWords,
  thinking: optional(
    Schema.Struct({
      type: Schema.String,
      budget_tokens: optional(Schema.Finite),
      display: optional(Schema.String)
    })
  ).annotate({ description: "Asks for the model's thinking.", ...request({ fields: thinkingSettings }) }),
  output_config: optional(Schema.Struct({ effort: optional(Schema.String), format: optional(OutputFormat) }))
    .annotate(request({ fields: outputSettings })),
  /** The name of `output_config.format` in earlier versions of the vendor's API. */
  output_format: optional(OutputFormat)
}

/** Body of a token count. */
export const CountTokensRequest = Schema.Struct(conversationFields).annotate({ identifier: "CountTokensRequest" })

/** Body of a messages request; fields that are not named here are accepted and ignored. */
export const MessagesRequest = Schema.Struct({
  ...conversationFields,
  stream: optional(Schema.Boolean).annotate({ description: "Answer with server-sent events; false by default." }),
  max_tokens: optional(Schema.Int.annotate({ description: "8192 when absent; not strictly enforced" })).annotate({
    description: "The default is 8192; not strictly enforced."
  }),
  stop_sequences: optional(Schema.Array(Schema.String)).annotate({
    description: "Sequences that end the reply before they appear.",
    ...request({ counted: "stops" })
  }),
  temperature: optional(Schema.Finite),
  top_p: optional(Schema.Finite),
  top_k: optional(Schema.Finite)
}).annotate({ identifier: "MessagesRequest" })

/** Reply of a token count. */
export const TokenCount = Schema.Struct({ input_tokens: Schema.Int }).annotate({ identifier: "MessageTokensCount" })

/** The vendor's `standard`, `priority` or `batch`, or another server's own name of a tier that the vendor does not have. */
const ServiceTier = Schema.String

const OutputTokensDetails = Schema.Struct({ thinking_tokens: Schema.Int })

/** Token counts of a reply. */
export const MessagesUsage = Schema.Struct({
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  cache_creation: Schema.Null,
  cache_creation_input_tokens: Schema.Int,
  cache_read_input_tokens: Schema.Int,
  output_tokens_details: Schema.NullOr(OutputTokensDetails),
  inference_geo: Schema.Null,
  server_tool_use: Schema.Null,
  service_tier: Schema.NullOr(ServiceTier),
  speed: Schema.Null
}).annotate({ identifier: "MessagesUsage" })

/** A page that a text cites. */
export const PageCitation = Schema.Struct({
  type: Schema.Literal("web_search_result_location"),
  cited_text: Schema.String,
  encrypted_index: Schema.Literal(""),
  title: Schema.NullOr(Schema.String),
  url: Schema.String
})
const ReplyTextBlock = Schema.Struct({
  type: Schema.Literal("text"),
  text: Schema.String,
  citations: Schema.NullOr(Schema.Array(PageCitation))
})
const ReplyThinkingBlock = Schema.Struct({
  type: Schema.Literal("thinking"),
  thinking: Schema.String,
  signature: Schema.Literal("")
})
const ReplyToolUseBlock = Schema.Struct({
  type: Schema.Literal("tool_use"),
  id: Schema.String,
  name: Schema.String,
  input: ParsedObject,
  caller: Schema.Struct({ type: Schema.Literal("direct") })
})

/** A block of a reply. */
export const ReplyBlock = Schema.Union([ReplyTextBlock, ReplyThinkingBlock, ReplyToolUseBlock])

const stopFields = {
  stop_reason: Schema.NullOr(Schema.Literals(["end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal"])),
  stop_sequence: Schema.NullOr(Schema.String),
  stop_details: Schema.NullOr(
    Schema.Struct({ type: Schema.Literal("refusal"), category: Schema.Null, explanation: Schema.NullOr(Schema.String) })
  ),
  container: Schema.Null
}

/** Reply of a messages request without `stream`. */
export const Message = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("message"),
  role: Schema.Literal("assistant"),
  model: Schema.String,
  content: Schema.Array(ReplyBlock),
  ...stopFields,
  diagnostics: Schema.Null,
  usage: MessagesUsage
}).annotate({ identifier: "Message" })

const event = <const Type extends string, const Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({ type: Schema.Literal(type), ...fields })

/** The `data` of a stream's events; the event's name is its `type`. */
export const MessagesStreamEvent = Schema.Union([
  event("message_start", { message: Message }),
  event("content_block_start", { index: Schema.Int, content_block: ReplyBlock }),
  event("content_block_delta", {
    index: Schema.Int,
    delta: Schema.Union([
      event("text_delta", { text: Schema.String }),
      event("thinking_delta", { thinking: Schema.String }),
      event("input_json_delta", { partial_json: Schema.String }),
      event("citations_delta", { citation: PageCitation })
    ])
  }),
  event("content_block_stop", { index: Schema.Int }),
  event("ping", {}),
  event("message_delta", {
    delta: Schema.Struct(stopFields),
    usage: Schema.Struct({
      input_tokens: Schema.Int,
      output_tokens: Schema.Int,
      cache_creation_input_tokens: Schema.Int,
      cache_read_input_tokens: Schema.Int,
      output_tokens_details: OutputTokensDetails,
      server_tool_use: Schema.Null,
      /** Of servers that name it only after the first event. */
      service_tier: Schema.optionalKey(ServiceTier)
    })
  }),
  event("message_stop", {}),
  messagesErrors.body
]).annotate({ identifier: "MessagesStreamEvent" })

/** An entry of the style's model list. */
export const MessagesModel = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("model"),
  type: Schema.Literal("model"),
  created: Schema.Int,
  created_at: Schema.String,
  owned_by: Schema.String,
  display_name: Schema.String,
  lifecycle: Schema.Literal("active"),
  line: Schema.NullOr(Schema.Literals(["opus", "sonnet", "haiku"])),
  deprecated_at: Schema.Null,
  retires_at: Schema.Null,
  ...factFields
}).annotate({ identifier: "MessagesModel" })

/** The style's model list. */
export const MessagesModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(MessagesModel),
  first_id: Schema.NullOr(Schema.String),
  last_id: Schema.NullOr(Schema.String),
  has_more: Schema.Literal(false)
})
