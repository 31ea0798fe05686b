/**
 * What chat completions and Responses have in common: messages and their content parts. Each of the two styles accepts the
 * part types of both.
 */
import * as Schema from "effect/Schema"
import {
  dataUrl,
  type FilePart,
  type ImagePart,
  noSampling,
  type Sampling,
  Text,
  withVendorFields
} from "../../domain/Conversation.ts"
import { isRecord } from "../../domain/json.ts"
import { optional, ParsedObject } from "../../domain/schemas.ts"
import { type Cooperative, mapCooperatively, type Slice } from "../../domain/stream/cooperative.ts"
import {
  assistantFields,
  cacheMarks,
  filePartFields,
  functionsOnly,
  outputTextFields,
  toolCallFields
} from "./chatFields.ts"
import { type Content, file, image, imageAt, omitted } from "./conversation.ts"
import { opaque } from "./Family.ts"
import type { Faults } from "./Faults.ts"
import { reads, request } from "./requestSchema.ts"

const textPart = reads(["type", "text"], cacheMarks)
const imagePartKind = reads(["type", "image_url", "detail", "file_id"], cacheMarks)
const filePartKind = reads(["type", "file", "file_data", "file_id", "file_url", "filename"], filePartFields)

/** The kinds of content parts. */
const contentKinds = {
  text: textPart,
  input_text: textPart,
  output_text: reads(["type", "text"], outputTextFields),
  summary_text: textPart,
  refusal: reads(["type", "refusal"], cacheMarks),
  image_url: imagePartKind,
  input_image: imagePartKind,
  computer_screenshot: imagePartKind,
  file: filePartKind,
  input_file: filePartKind,
  input_audio: reads(["type", "input_audio"], cacheMarks),
  audio_url: reads(["type", "audio_url"], cacheMarks),
  video_url: reads(["type", "video_url"], cacheMarks)
}

/** A part of a message's content; parts of unknown types are accepted. */
export const ContentPart = Schema.Struct({
  type: Schema.String,
  text: optional(Schema.String),
  refusal: optional(Schema.String),
  image_url: optional(
    Schema.Union([Schema.String, Schema.Struct({ url: Schema.String, detail: optional(Schema.String) })])
  ),
  detail: optional(Schema.String),
  file_id: optional(Schema.String),
  file_url: optional(Schema.String),
  file_data: optional(Schema.String),
  filename: optional(Schema.String),
  file: optional(Schema.Struct({
    file_data: optional(Schema.String),
    file_id: optional(Schema.String),
    filename: optional(Schema.String)
  })),
  input_audio: optional(Schema.Struct({ data: Schema.NonEmptyString, format: optional(Schema.String) })),
  /** Parts that servers have beyond the vendor's. */
  audio_url: optional(Schema.Union([Schema.String, Schema.Struct({ url: Schema.String })])),
  video_url: optional(Schema.Union([Schema.String, Schema.Struct({ url: Schema.String })]))
}).annotate(request({ kinds: { rows: contentKinds } }))

export type ContentPart = typeof ContentPart.Type

/** Content of a message: text, or parts. */
export const MessageContent = Schema.Union([Schema.String, Schema.Array(ContentPart)])

export type MessageContent = typeof MessageContent.Type

const functionCall = reads(["id", "type", "function", "extra_content"], toolCallFields)

/** A call in an assistant message; `name` is the Schema of the function's name. */
export const toolCall = <Name extends Schema.Constraint>(name: Name) =>
  Schema.Struct({
    id: optional(Schema.String),
    type: optional(Schema.String),
    function: Schema.Struct({ name, arguments: optional(Schema.Union([Schema.String, ParsedObject])) }),
    /** What only the upstream reads, such as `google.thought_signature`. */
    extra_content: optional(ParsedObject)
  }).annotate(request({ kinds: { rows: { "": functionCall, function: functionCall, custom: functionsOnly } } }))

const messageFields = ["role", "content", "name"]
const message = reads(messageFields, cacheMarks)
const resultMessage = reads([...messageFields, "tool_call_id"], cacheMarks)

const assistantMessage = reads([
  ...messageFields,
  "reasoning_content",
  "reasoning",
  "reasoning_details",
  "refusal",
  "tool_calls",
  "function_call"
], assistantFields)

/** The kinds of messages. */
const roles = {
  system: message,
  developer: message,
  user: message,
  assistant: assistantMessage,
  tool: resultMessage,
  function: resultMessage
}

/** A message of the chat-completions format; `call` is the Schema of its tool calls. */
export const chatMessage = <Call extends Schema.Constraint>(call: Call) =>
  Schema.Struct({
    role: Schema.Literals(["system", "developer", "user", "assistant", "tool", "function"]),
    content: optional(MessageContent),
    reasoning_content: optional(Schema.String),
    /** Another name of `reasoning_content`. */
    reasoning: optional(Schema.Unknown),
    /** Another name of `reasoning_content`, with fields that only the upstream reads; sent back with the message's calls. */
    reasoning_details: optional(Schema.Array(ParsedObject)),
    refusal: optional(Schema.String),
    name: optional(Schema.String),
    tool_calls: optional(Schema.Array(call)),
    /** The single call of the format before `tool_calls`; the message with its result has the role `function`. */
    function_call: optional(Schema.Struct({ name: Schema.String, arguments: optional(Schema.String) }))
      .annotate(request({ fate: opaque })),
    tool_call_id: optional(Schema.String)
  }).annotate(request({ kinds: { by: "role", rows: roles } }))

/** The details of reasoning that are text. */
const detailsText = (details: unknown): string =>
  Array.isArray(details)
    ? details.map((detail: unknown) => {
      if (!isRecord(detail)) return ""
      const text = detail["text"] ?? detail["summary"]
      return typeof text === "string" ? text : ""
    }).join("")
    : ""

/** The reasoning of an assistant's message, by whichever name it has. */
export const messageReasoning = (
  message: {
    readonly reasoning_content?: string | null
    readonly reasoning?: unknown
    readonly reasoning_details?: unknown
  }
): string => {
  const { reasoning, reasoning_content: content, reasoning_details: details } = message
  if (content) return content
  return typeof reasoning === "string" && reasoning !== "" ? reasoning : detailsText(details)
}

const imagePart = (part: ContentPart, field: string, faults: Faults): ImagePart => {
  const { image_url } = part
  const { detail, url }: { readonly url?: string; readonly detail?: string | null } = typeof image_url === "string"
    ? { url: image_url }
    : image_url ?? {}
  if (!url) {
    if (part.file_id) {
      faults.atElsewhere(`${field}.file_id`, "the gateway stores no files; send the picture in image_url instead")
    } else faults.at(`${field}.image_url`, "is required")
  }
  return url === undefined ? image({ detail: part.detail ?? detail }) : imageAt(url, part.detail ?? detail)
}

const filePart = (part: ContentPart, field: string, faults: Faults): FilePart => {
  const data = part.file_data ?? part.file?.file_data
  const id = part.file_id ?? part.file?.file_id
  const url = part.file_url
  if (!data && !id && !url) {
    faults.at(part.type === "file" ? `${field}.file.file_data` : `${field}.file_data`, "is required")
  }
  return file({ name: part.filename ?? part.file?.filename, url, id, data, ...dataUrl(data ?? "") })
}

const audioPart = ({ input_audio }: ContentPart, field: string, faults: Faults): FilePart => {
  if (!input_audio) faults.at(`${field}.input_audio`, "is required")
  const { data, format } = input_audio ?? {}
  return file({ kind: "audio", data, mediaType: format ? `audio/${format}` : undefined })
}

/** Audio or video at an address; a Base64 `data:` address becomes its data. */
const mediaPart = (part: ContentPart, kind: "audio" | "video", field: string, faults: Faults): FilePart => {
  const sent = kind === "audio" ? part.audio_url : part.video_url
  const url = typeof sent === "string" ? sent : sent?.url
  if (!url) faults.at(`${field}.${kind}_url`, "is required")
  return file({ kind, ...(dataUrl(url ?? "") ?? { url }) })
}

/** Decodes what all contracts have of a content part; `field` is its path in the request. */
const contentPart = (part: ContentPart, field: string, faults: Faults): Content => {
  switch (part.type) {
    case "text":
    case "input_text":
    case "output_text":
    case "summary_text":
      if (typeof part.text !== "string") faults.at(`${field}.text`, "must be a string")
      return Text(part.text ?? "")
    case "refusal":
      return Text(part.refusal ?? "")
    case "image_url":
    case "input_image":
    case "computer_screenshot":
      return imagePart(part, field, faults)
    case "file":
    case "input_file":
      return filePart(part, field, faults)
    case "input_audio":
      return audioPart(part, field, faults)
    case "audio_url":
      return mediaPart(part, "audio", field, faults)
    case "video_url":
      return mediaPart(part, "video", field, faults)
    default:
      if (part.text) return Text(part.text)
      faults.noteIgnored(field)
      return omitted(part.type)
  }
}

/** Decodes a content part, with its vendor fields. */
export const partOf = (part: ContentPart, field: string, faults: Faults): Content =>
  withVendorFields(contentPart(part, field, faults), faults.attach(field))

/** Decodes a message's content; empty text has no parts. */
export function* contentParts(
  content: MessageContent | null | undefined,
  field: string,
  faults: Faults,
  slice: Slice
): Cooperative<ReadonlyArray<Content>> {
  if (content === undefined || content === null || content === "") return []
  return typeof content === "string"
    ? [Text(content)]
    : yield* mapCooperatively(slice, content, (part, i) => partOf(part, `${field}[${i}]`, faults))
}

/** The sequences of `stop`. */
export const stopSequences = (stop: string | ReadonlyArray<string> | null | undefined): ReadonlyArray<string> =>
  typeof stop === "string" ? [stop] : stop ?? []

/** The sampling fields that both styles name alike. */
export const commonSampling = (
  request: {
    readonly [
      K in "temperature" | "top_p" | "top_k" | "seed" | "presence_penalty" | "frequency_penalty"
    ]?: number | null
  }
): Sampling => ({
  ...noSampling,
  temperature: request.temperature ?? undefined,
  topP: request.top_p ?? undefined,
  topK: request.top_k ?? undefined,
  seed: request.seed ?? undefined,
  presencePenalty: request.presence_penalty ?? undefined,
  frequencyPenalty: request.frequency_penalty ?? undefined
})
