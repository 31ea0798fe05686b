/**
 * Content parts of the chat-completions family: both of its styles take the words of either.
 */
import * as Schema from "effect/Schema"
import type { FilePart, ImagePart, TextPart } from "../../domain/Conversation.ts"
import { dataUrl, Text } from "../../domain/Conversation.ts"
import { optional } from "../../domain/schemas.ts"
import type { Faults } from "../../http/Faults.ts"

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
  input_audio: optional(Schema.Struct({ data: Schema.NonEmptyString, format: optional(Schema.String) }))
})

export type ContentPart = typeof ContentPart.Type

/** What a part becomes in the canonical conversation. */
export type CarriedPart = TextPart | ImagePart | FilePart

const imagePart = (part: ContentPart, field: string, faults: Faults): ImagePart => {
  const image = part.image_url
  const url = typeof image === "string" ? image : image?.url
  if (!url && !part.file_id) faults.at(`${field}.image_url`, "is required")
  const detail = part.detail ?? (typeof image === "string" ? undefined : image?.detail)
  const inline = dataUrl(url ?? "")
  return {
    _tag: "Image",
    url: inline === undefined ? url : undefined,
    data: inline?.data,
    mediaType: inline?.mediaType,
    detail: detail ?? undefined
  }
}

const filePart = (part: ContentPart, field: string, faults: Faults): FilePart => {
  const { file } = part
  const data = part.file_data ?? file?.file_data ?? undefined
  const id = part.file_id ?? file?.file_id ?? undefined
  const url = part.file_url ?? undefined
  // Under the name that the caller's words have for it.
  if (!data && !id && !url) {
    faults.at(part.type === "file" ? `${field}.file.file_data` : `${field}.file_data`, "is required")
  }
  const inline = dataUrl(data ?? "")
  return {
    _tag: "File",
    kind: "file",
    name: part.filename ?? file?.filename ?? undefined,
    url,
    id,
    data: inline?.data ?? data,
    mediaType: inline?.mediaType
  }
}

const audioPart = (part: ContentPart, field: string, faults: Faults): FilePart => {
  const audio = part.input_audio
  if (!audio) faults.at(`${field}.input_audio`, "is required")
  return {
    _tag: "File",
    kind: "audio",
    name: undefined,
    url: undefined,
    id: undefined,
    data: audio?.data,
    mediaType: audio?.format ? `audio/${audio.format}` : undefined
  }
}

/** A part as the canonical conversation has it; `field` is where it stands. */
export const contentPart = (part: ContentPart, field: string, faults: Faults): CarriedPart => {
  switch (part.type) {
    case "text":
    case "input_text":
    case "output_text":
    case "summary_text":
      if (typeof part.text !== "string") faults.at(`${field}.text`, "Expected string")
      return Text(part.text ?? "")
    case "refusal":
      return Text(part.refusal ?? "")
    case "image_url":
    case "input_image":
      return imagePart(part, field, faults)
    case "file":
    case "input_file":
      return filePart(part, field, faults)
    case "input_audio":
      return audioPart(part, field, faults)
    default:
      // Never dropped silently: what cannot be carried is named to the model.
      return Text(`[${part.type} omitted]`)
  }
}
