/**
 * The items of the Responses style, of which conversations and outputs are made. Callers send any mixture of them, items of
 * earlier outputs included. Items of unknown types are accepted.
 */
import * as Schema from "effect/Schema"
import { optional, ParsedObject } from "../../domain/schemas.ts"
import { chatMessage, ContentPart, MessageContent, toolCall } from "../shared/chatFamily.ts"
import { kindsOf, request, rowOfSchema } from "../shared/requestSchema.ts"
import {
  callFields as vendorsCallFields,
  encryptedContent,
  itemFields as vendorsItemFields,
  itemStatus,
  messageFields as vendorFields,
  otherItems
} from "./family.ts"

const Status = Schema.Literals(["in_progress", "completed", "incomplete"])

const itemFields = {
  id: optional(Schema.String),
  status: optional(Schema.String).annotate(request({ fate: itemStatus }))
}

const vendorsCall = request({ fields: vendorsCallFields })

const messageFields = {
  ...itemFields,
  role: Schema.Literals(["user", "assistant", "system", "developer"]),
  name: optional(Schema.String),
  content: MessageContent
}

const Message = Schema.Struct({ ...messageFields, type: Schema.Literal("message") })
  .annotate(request({ fields: vendorFields }))
const UntypedMessage = Schema.Struct({ type: optional(Schema.Never), ...messageFields })
  .annotate(request({ fields: vendorFields }))

const FunctionCall = Schema.Struct({
  ...itemFields,
  type: Schema.Literal("function_call"),
  call_id: optional(Schema.String),
  name: Schema.NonEmptyString,
  namespace: optional(Schema.String),
  arguments: optional(Schema.Union([Schema.String, ParsedObject]))
}).annotate(vendorsCall)

const callOutput = <const Type extends string>(type: Type) =>
  Schema.Struct({
    ...itemFields,
    type: Schema.Literal(type),
    call_id: optional(Schema.String),
    name: optional(Schema.String),
    namespace: optional(Schema.String),
    output: MessageContent
  }).annotate(vendorsCall)

const CustomToolCall = Schema.Struct({
  ...itemFields,
  type: Schema.Literal("custom_tool_call"),
  call_id: optional(Schema.String),
  name: Schema.NonEmptyString,
  namespace: optional(Schema.String),
  input: Schema.String
}).annotate(vendorsCall)

export const ReasoningText = Schema.Struct({ type: optional(Schema.String), text: Schema.String })

const Reasoning = Schema.Struct({
  ...itemFields,
  type: Schema.Literal("reasoning"),
  summary: optional(Schema.Array(ReasoningText)),
  content: optional(Schema.Array(ReasoningText)),
  encrypted_content: optional(Schema.String).annotate(request({ fate: encryptedContent }))
}).annotate(request({ fields: vendorsItemFields }))

const ItemReference = Schema.Struct({ type: Schema.Literal("item_reference"), id: Schema.NonEmptyString })
const UntypedReference = Schema.Struct({
  type: optional(Schema.Never),
  id: Schema.NonEmptyString,
  role: Schema.optionalKey(Schema.Never),
  content: Schema.optionalKey(Schema.Never)
})

/** A content part in the place of an item; it stands for a user message. */
const loosePart = <const Type extends string>(type: Type) =>
  Schema.Struct({ ...ContentPart.fields, type: Schema.Literal(type) })

/** The types of content parts in the places of items. */
export const loosePartTypes: ReadonlySet<string> = new Set([
  "input_text",
  "input_image",
  "input_file",
  "input_audio",
  "text",
  "image_url"
])

export const knownTypes: ReadonlySet<string> = new Set([
  "message",
  "function_call",
  "function_call_output",
  "custom_tool_call",
  "custom_tool_call_output",
  "reasoning",
  "item_reference",
  ...loosePartTypes
])

/** A JSON object whose `type` is not one of the known ones. */
export const otherTypes = (known: ReadonlySet<string>) =>
  Schema.StructWithRest(
    Schema.Struct({
      type: Schema.String.check(Schema.makeFilter((type: string) => !known.has(type))).pipe(Schema.brand("OtherType"))
    }),
    [ParsedObject]
  )

const OtherItem = otherTypes(knownTypes)

/** An item of a type that has no Schema. */
export const otherItem = Schema.decodeUnknownSync(OtherItem)

// Members with a literal `type` come before those without: an error is reported for the first member that can match.
const itemMembers = [
  Message,
  FunctionCall,
  callOutput("function_call_output"),
  CustomToolCall,
  callOutput("custom_tool_call_output"),
  Reasoning,
  loosePart("input_text"),
  loosePart("input_image"),
  loosePart("input_file"),
  loosePart("input_audio"),
  loosePart("text"),
  loosePart("image_url"),
  UntypedMessage
] as const

/** An item of a conversation, in any form that callers may send. */
export const Item = Schema.Union([...itemMembers, OtherItem])

/** An item of a request: an item, or a reference to one. */
export const InputItem = Schema.Union([ItemReference, ...itemMembers, UntypedReference, OtherItem])
  .annotate({
    identifier: "ResponseInputItem",
    ...request({
      kinds: { rows: { ...kindsOf(ContentPart), "": rowOfSchema(UntypedMessage), ...otherItems } }
    })
  })

export type Item = typeof Item.Type
export type InputItem = typeof InputItem.Type

/** True for an item of an unknown type. */
export const isOtherItem = (item: Item): item is typeof OtherItem.Type =>
  typeof item.type === "string" && !knownTypes.has(item.type)

/** A reference to an item of a stored response. */
export type ItemReference = typeof ItemReference.Type | typeof UntypedReference.Type

/** True for references; their `type` may be absent. */
export const isReference = (item: InputItem): item is ItemReference =>
  item.type === "item_reference" || (typeof item.type !== "string" && !("role" in item))

/** A call in a message of `messages`. */
export const InputToolCall = toolCall(Schema.NonEmptyString)

/** A message in the chat-completions format, accepted in `messages`. */
export const InputMessage = chatMessage(InputToolCall).annotate({ identifier: "ResponseInputMessage" })

export type InputMessage = typeof InputMessage.Type

/** A citation of a page in the text. */
export const UrlCitation = Schema.Struct({
  type: Schema.Literal("url_citation"),
  start_index: Schema.Int,
  end_index: Schema.Int,
  title: Schema.String,
  url: Schema.String
})

const tokenFields = { token: Schema.String, bytes: Schema.Array(Schema.Int), logprob: Schema.Finite }

/** Log probabilities of the text's tokens, in the form of this style. */
export const TextLogprobs = Schema.Array(
  Schema.Struct({ ...tokenFields, top_logprobs: Schema.Array(Schema.Struct(tokenFields)) })
)

/** A part of an output message. */
export const OutputText = Schema.Struct({
  type: Schema.Literal("output_text"),
  text: Schema.String,
  annotations: Schema.Array(UrlCitation),
  logprobs: TextLogprobs
})

/** A part of an output message by which the model refuses. */
export const OutputRefusal = Schema.Struct({ type: Schema.Literal("refusal"), refusal: Schema.String })

/** A part of a reasoning item's summary, which holds the model's reasoning. */
export const SummaryText = Schema.Struct({ type: Schema.Literal("summary_text"), text: Schema.String })

const OutputMessage = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("message"),
  status: Status,
  role: Schema.Literal("assistant"),
  content: Schema.Array(Schema.Union([OutputText, OutputRefusal]))
})

const OutputReasoning = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("reasoning"),
  status: Status,
  summary: Schema.Array(SummaryText)
})

/** A picture that the model made. */
const OutputPicture = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("image_generation_call"),
  status: Schema.Literals(["in_progress", "completed"]),
  /** Base64; `null` while the picture is in progress. */
  result: Schema.NullOr(Schema.String),
  /** Absent for formats that the vendor does not name. */
  output_format: Schema.optionalKey(Schema.Literals(["png", "webp", "jpeg", "gif", "svg"]))
})

const callFields = {
  status: Status,
  call_id: Schema.String,
  name: Schema.String,
  /** Absent for a tool outside of namespaces. */
  namespace: Schema.optionalKey(Schema.String)
}

const OutputFunctionCall = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("function_call"),
  ...callFields,
  arguments: Schema.String
})

const OutputCustomToolCall = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("custom_tool_call"),
  ...callFields,
  input: Schema.String
})

const clientCall = <const Type extends string, Fields extends Schema.Struct.Fields>(type: Type, fields: Fields) =>
  Schema.Struct({
    id: Schema.String,
    type: Schema.Literal(type),
    status: Schema.Literals(["in_progress", "completed"]),
    call_id: Schema.String,
    ...fields
  })

const patchFields = { path: Schema.String, diff: Schema.String }

const at = { x: Schema.Finite, y: Schema.Finite }
const held = { keys: Schema.optionalKey(Schema.Array(Schema.String)) }

const ComputerAction = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("click"),
    ...at,
    button: Schema.Literals(["left", "right", "wheel", "back", "forward"]),
    ...held
  }),
  Schema.Struct({ type: Schema.Literal("double_click"), ...at, keys: Schema.NullOr(Schema.Array(Schema.String)) }),
  Schema.Struct({ type: Schema.Literal("drag"), path: Schema.Array(Schema.Struct(at)), ...held }),
  Schema.Struct({ type: Schema.Literal("keypress"), keys: Schema.Array(Schema.String) }),
  Schema.Struct({ type: Schema.Literal("move"), ...at, ...held }),
  Schema.Struct({ type: Schema.Literal("screenshot") }),
  Schema.Struct({
    type: Schema.Literal("scroll"),
    ...at,
    scroll_x: Schema.Finite,
    scroll_y: Schema.Finite,
    ...held
  }),
  Schema.Struct({ type: Schema.Literal("type"), text: Schema.String }),
  Schema.Struct({ type: Schema.Literal("wait") })
])

/** A call of one of the vendor's tools that the caller runs. */
const clientCalls = [
  clientCall("local_shell_call", {
    action: Schema.Struct({
      type: Schema.Literal("exec"),
      command: Schema.Array(Schema.String),
      env: Schema.Record(Schema.String, Schema.String),
      timeout_ms: Schema.optionalKey(Schema.Finite),
      user: Schema.optionalKey(Schema.String),
      working_directory: Schema.optionalKey(Schema.String)
    })
  }),
  clientCall("shell_call", {
    action: Schema.Struct({
      commands: Schema.Array(Schema.String),
      timeout_ms: Schema.NullOr(Schema.Finite),
      max_output_length: Schema.NullOr(Schema.Finite)
    }),
    environment: Schema.Struct({ type: Schema.Literal("local") })
  }),
  clientCall("apply_patch_call", {
    operation: Schema.Union([
      Schema.Struct({ type: Schema.Literal("create_file"), ...patchFields }),
      Schema.Struct({ type: Schema.Literal("update_file"), ...patchFields }),
      Schema.Struct({ type: Schema.Literal("delete_file"), path: Schema.String })
    ])
  }),
  clientCall("computer_call", {
    /** Only for a single action. */
    action: Schema.optionalKey(ComputerAction),
    actions: Schema.Array(ComputerAction),
    pending_safety_checks: Schema.Array(Schema.Never)
  }),
  clientCall("tool_search_call", { arguments: ParsedObject, execution: Schema.Literal("client") })
] as const

/** What a model wrote of the conversation so far. Only the gateway can read it. */
export const OutputCompaction = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("compaction"),
  encrypted_content: Schema.String
})

/** An item of a response's output. */
export const OutputItem = Schema.Union([
  OutputMessage,
  OutputReasoning,
  OutputFunctionCall,
  OutputCustomToolCall,
  OutputPicture,
  OutputCompaction,
  ...clientCalls
])
  .annotate({ identifier: "ResponseOutputItem" })
