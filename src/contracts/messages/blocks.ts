/**
 * Text, pictures and files as blocks of a messages request.
 */
import * as Result from "effect/Result"
import type { FilePart, ImagePart, Part, TextPart } from "../../domain/Conversation.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import { mergeFields, type VendorFields } from "../../domain/VendorFields.ts"
import { pictureType } from "../shared/fileName.ts"

/** A block of content, of a tool or of a message. */
export type Block = { readonly [field: string]: Json }

/** Content of a message or of a result. */
export type Content = TextPart | ImagePart | FilePart

export const isContent = (part: Part): part is Content =>
  part._tag === "Text" || part._tag === "Image" || part._tag === "File"

/** The vendor fields of an element, if it has any. */
export const sentFields = (vendorFields: VendorFields | undefined): JsonFields | undefined =>
  vendorFields?.vendor === "messages" ? vendorFields.fields : undefined

/** The field by which this contract, and clients of others, mark what a server keeps of a prompt. */
export const markField = "cache_control"

/** The mark that a client of another contract has set. */
export const markOf = (vendorFields: VendorFields | undefined): JsonFields | undefined => {
  const mark = vendorFields?.vendor === "messages" ? undefined : vendorFields?.fields[markField]
  return isFields(mark) ? mark : undefined
}

/**
 * A block with the caller's own fields, or as the caller wrote it where the conversation has it in other words; `undefined` if the block
 * before it has the words of both.
 */
export const asSent = (block: Block, vendorFields: VendorFields | undefined): Block | undefined => {
  if (vendorFields === undefined || vendorFields.vendor !== "messages") {
    const mark = markOf(vendorFields)
    return mark === undefined ? block : { ...block, [markField]: mark }
  }
  const { fields, wholeElement } = vendorFields
  if (wholeElement !== true) return mergeFields(block, fields)
  return Object.keys(fields).length === 0 ? undefined : fields
}

const textBlock = (text: string): Block => ({ type: "text", text })

const imageBlock = ({ data, mediaType, url }: Pick<ImagePart, "data" | "mediaType" | "url">): Block => ({
  type: "image",
  source: data === undefined
    ? { type: "url", url: url ?? "" }
    : { type: "base64", media_type: pictureType({ data, mediaType }), data }
})

const textTypes = /^text\/|[/+](?:json|xml|yaml|x-yaml|javascript|x-sh|toml|csv|markdown)\b/i

/** The Base64 form of `%PDF-`. */
const pdfMark = "JVBERi0"

const isPdf = ({ data, mediaType, name }: FilePart): boolean =>
  mediaType === "application/pdf" ||
  ((mediaType === undefined || mediaType === "application/octet-stream") &&
    (data?.startsWith(pdfMark) === true || /\.pdf$/i.test(name ?? "")))

const decoder = new TextDecoder()

/** The text in Base64; throws for anything else. */
const textIn = (data: string): string => decoder.decode(Uint8Array.from(atob(data), (byte) => byte.charCodeAt(0)))

/** The source of a document; `undefined` for what the vendor has no source for. */
const documentSource = (part: FilePart): Block | undefined => {
  const { data, id, kind, mediaType, url } = part
  if (kind !== "file") return undefined
  if (data === undefined) {
    return id !== undefined ? { type: "file", file_id: id } : url !== undefined ? { type: "url", url } : undefined
  }
  if (isPdf(part)) return { type: "base64", media_type: "application/pdf", data }
  const text = textTypes.test(mediaType ?? "") ? Result.getOrUndefined(Result.try(() => textIn(data))) : undefined
  return text === undefined ? undefined : { type: "text", media_type: "text/plain", data: text }
}

const fileBlock = (part: FilePart): Block => {
  const { data, kind, mediaType = "", name, url } = part
  if (data !== undefined && /^image\//i.test(mediaType)) {
    return imageBlock({ data, mediaType, url })
  }
  const source = documentSource(part)
  if (source === undefined) return textBlock(`[${kind} omitted: ${name ?? url ?? "no content"}]`)
  return { type: "document", source, ...(name === undefined ? {} : { title: name }) }
}

/** The block of a part, if it has one. */
export const contentBlock = (part: Content): Block | undefined => {
  switch (part._tag) {
    case "Text":
      return asSent(textBlock(part.text), part.vendorFields)
    case "Image":
      return asSent(imageBlock(part), part.vendorFields)
    case "File":
      return asSent(fileBlock(part), part.vendorFields)
  }
}

export const isBlock = (block: Block | undefined): block is Block => block !== undefined
