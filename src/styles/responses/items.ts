/**
 * The items of the Responses style: what a conversation and an output are made of. Callers send any mixture of them, those of
 * earlier outputs included; items of types that are not named here are accepted.
 */
import * as Schema from "effect/Schema"
import { optional, ParsedObject } from "../../domain/schemas.ts"
import { ContentPart } from "../shared/contentParts.ts"

const Content = Schema.Union([Schema.String, Schema.Array(ContentPart)])

const Status = Schema.Literals(["in_progress", "completed", "incomplete"])

const itemFields = { id: optional(Schema.String), status: optional(Schema.String) }

const messageFields = {
  ...itemFields,
  role: Schema.Literals(["user", "assistant", "system", "developer"]),
  content: Content
}

const Message = Schema.Struct({ ...messageFields, type: Schema.Literal("message") })
const UntypedMessage = Schema.Struct({ type: optional(Schema.Never), ...messageFields })

const FunctionCall = Schema.Struct({
  ...itemFields,
  type: Schema.Literal("function_call"),
  call_id: optional(Schema.String),
  name: Schema.NonEmptyString,
  arguments: optional(Schema.Union([Schema.String, ParsedObject]))
})

const FunctionCallOutput = Schema.Struct({
  ...itemFields,
  type: Schema.Literal("function_call_output"),
  call_id: optional(Schema.String),
  name: optional(Schema.String),
  output: Content
})

const CustomToolCall = Schema.Struct({
  ...itemFields,
  type: Schema.Literal("custom_tool_call"),
  call_id: optional(Schema.String),
  name: Schema.NonEmptyString,
  input: Schema.String
})

const CustomToolCallOutput = Schema.Struct({
  ...itemFields,
  type: Schema.Literal("custom_tool_call_output"),
  call_id: optional(Schema.String),
  name: optional(Schema.String),
  output: Content
})

export const ReasoningText = Schema.Struct({ type: optional(Schema.String), text: Schema.String })

const Reasoning = Schema.Struct({
  ...itemFields,
  type: Schema.Literal("reasoning"),
  summary: optional(Schema.Array(ReasoningText)),
  content: optional(Schema.Array(ReasoningText)),
  encrypted_content: optional(Schema.String)
})

const ItemReference = Schema.Struct({ type: Schema.Literal("item_reference"), id: Schema.NonEmptyString })
const UntypedReference = Schema.Struct({
  type: optional(Schema.Never),
  id: Schema.NonEmptyString,
  role: Schema.optionalKey(Schema.Never),
  content: Schema.optionalKey(Schema.Never)
})

/** A content part where an item is expected: a user message of its own. */
const loosePart = <const Type extends string>(type: Type) =>
  Schema.Struct({ ...ContentPart.fields, type: Schema.Literal(type) })

export const knownTypes: ReadonlySet<string> = new Set([
  "message",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
  "reasoning",
  "item_reference",
  "input_text",
  "input_image",
  "input_file",
  "input_audio",
  "text",
  "image_url"
])

/** A JSON object that is told apart by a `type` which the gateway has no use for. */
export const otherTypes = (known: ReadonlySet<string>) =>
  Schema.StructWithRest(
    Schema.Struct({
      type: Schema.String.check(Schema.makeFilter((type: string) => !known.has(type))).pipe(Schema.brand("OtherType"))
    }),
    [ParsedObject]
  )

const OtherItem = otherTypes(knownTypes)

// Members that a literal `type` tells apart first, those without `type` next: a fault is told by the first that may be meant.
const itemMembers = [
  Message,
  FunctionCall,
  FunctionCallOutput,
  CustomToolCall,
  CustomToolCallOutput,
  Reasoning,
  loosePart("input_text"),
  loosePart("input_image"),
  loosePart("input_file"),
  loosePart("input_audio"),
  loosePart("text"),
  loosePart("image_url"),
  UntypedMessage
] as const

/** An item of a conversation, as the caller may write it. */
export const Item = Schema.Union([...itemMembers, OtherItem])

/** An item of a request: an item, or a reference to one. */
export const InputItem = Schema.Union([ItemReference, ...itemMembers, UntypedReference, OtherItem])
  .annotate({ identifier: "ResponseInputItem" })

export type Item = typeof Item.Type
export type InputItem = typeof InputItem.Type
export type InputContent = typeof Content.Type

/** True for an item of a type that the gateway has no use for. */
export const isOtherItem = (item: Item): item is typeof OtherItem.Type =>
  typeof item.type === "string" && !knownTypes.has(item.type)

/** A reference to an item of a stored response. */
export type ItemReference = typeof ItemReference.Type | typeof UntypedReference.Type

/** True for references; they may come without `type`. */
export const isReference = (item: InputItem): item is ItemReference =>
  item.type === "item_reference" || (typeof item.type !== "string" && !("role" in item))

/** A call in a message of the chat-completions form. */
export const InputToolCall = Schema.Struct({
  id: optional(Schema.String),
  type: optional(Schema.String),
  function: Schema.Struct({
    name: Schema.NonEmptyString,
    arguments: optional(Schema.Union([Schema.String, ParsedObject]))
  })
})

/** The one call of such a message in the form before `tool_calls`. */
const InputFunctionCall = Schema.Struct({ name: Schema.String, arguments: optional(Schema.String) })

/** A message of the chat-completions form, accepted in `messages`. */
export const InputMessage = Schema.Struct({
  role: Schema.Literals(["system", "developer", "user", "assistant", "tool", "function"]),
  content: optional(Content),
  reasoning_content: optional(Schema.String),
  refusal: optional(Schema.String),
  name: optional(Schema.String),
  tool_calls: optional(Schema.Array(InputToolCall)),
  function_call: optional(InputFunctionCall),
  tool_call_id: optional(Schema.String)
}).annotate({ identifier: "ResponseInputMessage" })

export type InputMessage = typeof InputMessage.Type

/** A text of an output message. */
export const OutputText = Schema.Struct({
  type: Schema.Literal("output_text"),
  text: Schema.String,
  annotations: Schema.Array(Schema.Never),
  logprobs: Schema.Array(Schema.Never)
})

/** A part of a reasoning item's summary, which holds the model's reasoning trace. */
export const SummaryText = Schema.Struct({ type: Schema.Literal("summary_text"), text: Schema.String })

export const OutputMessage = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("message"),
  status: Status,
  role: Schema.Literal("assistant"),
  content: Schema.Array(OutputText)
})

export const OutputReasoning = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("reasoning"),
  status: Status,
  summary: Schema.Array(SummaryText)
})

export const OutputFunctionCall = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("function_call"),
  status: Status,
  call_id: Schema.String,
  name: Schema.String,
  arguments: Schema.String
})

export const OutputCustomToolCall = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("custom_tool_call"),
  status: Status,
  call_id: Schema.String,
  name: Schema.String,
  input: Schema.String
})

/** An item of a response's output. */
export const OutputItem = Schema.Union([OutputMessage, OutputReasoning, OutputFunctionCall, OutputCustomToolCall])
  .annotate({ identifier: "ResponseOutputItem" })
