/** What an item of a reply says once it is whole. */
import { isRecord, type Json, type JsonFields, type JsonRecord } from "../../domain/json.ts"
import { type UpstreamEvent, UpstreamExtra } from "../../domain/UpstreamEvent.ts"
import { asString, isObjectText, writeJson } from "../shared/json.ts"

/** True for items without which the client cannot go on. */
export const isNeeded = (type: unknown): boolean =>
  type === "message" || type === "function_call" || type === "custom_tool_call"

export const listOf = (value: unknown): ReadonlyArray<JsonRecord> => Array.isArray(value) ? value.filter(isRecord) : []

export const textsOf = (parts: unknown): string => listOf(parts).map(({ text }) => asString(text) ?? "").join("\n\n")

/** An annotation in the form of OpenAI-compatible servers, which the other styles read. */
const annotationOf = (annotation: JsonRecord): Json => {
  const { type, ...fields } = annotation as JsonFields
  return type === "url_citation" ? { type, url_citation: fields } : annotation as JsonFields
}

export const annotated = (annotations: ReadonlyArray<JsonRecord>): UpstreamEvent =>
  UpstreamExtra("openai", "message", { annotations: annotations.map(annotationOf) })

/** A picture that the server made. */
export const pictureOf = ({ output_format: format, result }: JsonRecord): UpstreamEvent | undefined => {
  const data = asString(result)
  if (data === undefined) return undefined
  const url = `data:image/${asString(format) ?? "png"};base64,${data}`
  return UpstreamExtra("openai", "message", { images: [{ type: "image_url", image_url: { url } }] })
}

/** The name and the arguments of a whole call, as JSON text; `undefined` for other items, and for arguments that are no object. */
export const callOf = (item: JsonRecord): { readonly name: string; readonly args: string } | undefined => {
  const name = asString(item["name"])
  if (name === undefined) return undefined
  if (item["type"] === "custom_tool_call") {
    return { name, args: JSON.stringify({ input: asString(item["input"]) ?? "" }) }
  }
  if (item["type"] !== "function_call") return undefined
  const { arguments: sent } = item
  const text = isRecord(sent) ? writeJson(sent) : asString(sent)?.trim()
  const args = text === undefined || text === "" ? "{}" : text
  return isObjectText(args) ? { name, args } : undefined
}

export const sealable = ({ content, encrypted_content: sealed }: JsonRecord): boolean =>
  asString(sealed) !== undefined || listOf(content).length > 0
