/**
 * What a content-generation server says beyond text and calls, in the words that all contracts read: pictures, citations, and code that the
 * vendor ran. The rest is seen in the request's record.
 */
import type { Json, JsonFields } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import { type UpstreamEvent, UpstreamExtra, UpstreamText } from "../../domain/UpstreamEvent.ts"
import { commonWords } from "../names.ts"

const stringOf = (value: Json | undefined): string => typeof value === "string" ? value : ""

const listOf = (value: Json | undefined): ReadonlyArray<Json> => Array.isArray(value) ? value : []

const imagesOf = (url: string): UpstreamEvent =>
  UpstreamExtra(commonWords, "message", { images: [{ type: "image_url", image_url: { url } }] })

const mediaOf = ({ data, fileUri, mimeType }: JsonFields): UpstreamEvent => {
  const type = stringOf(mimeType)
  const url = fileUri === undefined ? `data:${type};base64,${stringOf(data)}` : stringOf(fileUri)
  if (type.startsWith("image/")) return imagesOf(url)
  return UpstreamText(fileUri === undefined ? `[${type === "" ? "file" : type} omitted]` : `[file: ${url}]`)
}

const blockOf = (value: JsonFields): ReadonlyArray<UpstreamEvent> => {
  const { codeExecutionResult: outcome, executableCode: code, fileData, inlineData } = value
  if (isFields(inlineData)) return [mediaOf(inlineData)]
  if (isFields(fileData)) return [mediaOf(fileData)]
  if (isFields(code)) {
    const language = stringOf(code["language"]).toLowerCase()
    return [UpstreamText(`\n\`\`\`${language}\n${stringOf(code["code"])}\n\`\`\`\n`)]
  }
  return isFields(outcome) ? [UpstreamText(`\n\`\`\`\n${stringOf(outcome["output"])}\n\`\`\`\n`)] : []
}

/** The pages that grounded the reply, each with the part of the text that it supports. */
const citationsOf = (grounding: JsonFields): ReadonlyArray<Json> => {
  const pages = listOf(grounding["groundingChunks"]).map((chunk) => isFields(chunk) ? chunk["web"] : undefined)
  return listOf(grounding["groundingSupports"]).flatMap((support) => {
    const segment = isFields(support) ? support["segment"] : undefined
    if (!isFields(support) || !isFields(segment)) return []
    return listOf(support["groundingChunkIndices"]).flatMap((index): ReadonlyArray<Json> => {
      const page = typeof index === "number" ? pages[index] : undefined
      if (!isFields(page) || stringOf(page["uri"]) === "") return []
      return [{
        type: "url_citation",
        url_citation: {
          start_index: segment["startIndex"] ?? 0,
          end_index: segment["endIndex"] ?? 0,
          title: stringOf(page["title"]),
          url: stringOf(page["uri"])
        }
      }]
    })
  })
}

/** The events that clients of other contracts get for an event of this one. */
export const inCommonWords = ({ at, value }: UpstreamExtra): ReadonlyArray<UpstreamEvent> => {
  if (at === "block") return blockOf(value)
  const grounding = at === "choice" ? value["groundingMetadata"] : undefined
  const annotations = isFields(grounding) ? citationsOf(grounding) : []
  return annotations.length === 0 ? [] : [UpstreamExtra(commonWords, "message", { annotations })]
}
