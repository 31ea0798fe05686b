/**
 * Text, images and files as the content of a chat message.
 */
import type { FilePart, ImagePart, TextPart } from "../../domain/Conversation.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import { type Cooperative, mapCooperatively, type Slice } from "../../domain/stream/cooperative.ts"
import { hasSentFields, type Sends, withVendorFieldsOf } from "./chatVendorFields.ts"
import { fileName } from "./fileName.ts"

/** A part of the content of a message. */
export type Content = TextPart | ImagePart | FilePart

const dataUrl = (data: string, mediaType: string) => `data:${mediaType};base64,${data}`

/** The names of audio formats in the chat API; other formats use the subtype of their media type. */
const audioFormats: ReadonlyMap<string, string> = new Map([
  ["mpeg", "mp3"],
  ["mpeg3", "mp3"],
  ["x-mpeg", "mp3"],
  ["x-wav", "wav"],
  ["wave", "wav"],
  ["vnd.wave", "wav"],
  ["x-flac", "flac"],
  ["x-m4a", "m4a"],
  ["mp4", "m4a"]
])

/** The name of an audio format by its media type. */
export const audioFormat = (mediaType: string | undefined): string => {
  const subtype = mediaType?.toLowerCase().replace(/;.*/, "").split("/")[1]?.trim() ?? "wav"
  return audioFormats.get(subtype) ?? subtype
}

const imagePart = ({ data, detail, mediaType, url }: ImagePart): JsonFields => ({
  type: "image_url",
  image_url: {
    url: data === undefined ? url ?? "" : dataUrl(data, mediaType ?? "image/png"),
    ...(detail === undefined ? {} : { detail })
  }
})

const filePart = (part: FilePart): JsonFields => {
  const { data, id, kind, mediaType, name, url } = part
  const filename = fileName(part)
  if (kind === "audio" && data !== undefined) {
    return { type: "input_audio", input_audio: { data, format: audioFormat(mediaType) } }
  }
  // OpenAI has no such part; vLLM and others use these names.
  if (kind === "audio" && url !== undefined) return { type: "audio_url", audio_url: { url } }
  if (kind === "video" && data !== undefined) {
    return { type: "video_url", video_url: { url: dataUrl(data, mediaType ?? "video/mp4") } }
  }
  if (kind === "video" && url !== undefined) return { type: "video_url", video_url: { url } }
  if (data === undefined && id === undefined) {
    return { type: "text", text: `[${kind} omitted: ${name ?? url ?? "no content"}]` }
  }
  return {
    type: "file",
    file: {
      ...(data === undefined ? {} : { file_data: dataUrl(data, mediaType ?? "application/octet-stream") }),
      ...(id === undefined ? {} : { file_id: id }),
      ...(filename === undefined ? {} : { filename })
    }
  }
}

const contentPart = (part: Content): JsonFields => {
  switch (part._tag) {
    case "Text":
      return { type: "text", text: part.text }
    case "Image":
      return imagePart(part)
    case "File":
      return filePart(part)
  }
}

/**
 * A string for text alone, which every server accepts; otherwise a list of parts, with their vendor fields. In
 * slices, because there may be many.
 */
export function* contentOf(parts: ReadonlyArray<Content>, slice: Slice, sends: Sends): Cooperative<Json> {
  const texts: Array<string> = []
  for (const part of parts) {
    if (slice.add(1)) yield slice.end()
    if (part._tag !== "Text" || hasSentFields(part, sends)) {
      return yield* mapCooperatively(slice, parts, (each) => withVendorFieldsOf(each, contentPart(each), sends))
    }
    texts.push(part.text)
  }
  return texts.join("\n\n")
}
