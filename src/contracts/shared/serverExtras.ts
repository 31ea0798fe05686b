/**
 * What of an OpenAI-compatible server's extra fields has a place in other styles: refusals, spoken text, pictures. The rest is
 * seen in the request's record.
 */
import { dataUrl } from "../../domain/Conversation.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"

/** A picture: Base64 data with its media type, or an address. */
export type ServerImage =
  | { readonly data: string; readonly mediaType: string }
  | { readonly url: string }

const stringOf = (value: Json | undefined): string => typeof value === "string" ? value : ""

/** The text, or the piece of it, by which the model refuses; empty without a refusal. */
export const refusalIn = (message: JsonFields | undefined): string => stringOf(message?.["refusal"])

const audioIn = (message: JsonFields | undefined, field: string): string => {
  const audio = message?.["audio"]
  return isFields(audio) ? stringOf(audio[field]) : ""
}

/** The text of spoken audio. */
export const transcriptIn = (message: JsonFields | undefined): string => audioIn(message, "transcript")

/** The Base64 data of audio, or the piece of it. */
export const audioDataIn = (message: JsonFields | undefined): string => audioIn(message, "data")

/** The pictures of a message. */
export const imagesIn = (message: JsonFields | undefined): ReadonlyArray<ServerImage> => {
  const images = message?.["images"]
  if (!Array.isArray(images)) return []
  return images.flatMap((image: Json) => {
    const part = isFields(image) ? image["image_url"] : undefined
    const url = stringOf(isFields(part) ? part["url"] : part)
    return url === "" ? [] : [dataUrl(url) ?? { url }]
  })
}

/** Pictures as text, for styles whose replies have no such pictures. */
export const imageText = (images: ReadonlyArray<ServerImage>): string =>
  images.map((image) => "url" in image ? `[image: ${image.url}]` : "[image omitted]").join("\n")

/** A token with its log probability. */
interface LikelyToken {
  readonly token: string
  /** Its bytes in UTF-8, as the server sent them. */
  readonly bytes: ReadonlyArray<Json>
  readonly logprob: number
}

/** A token in the Responses style, which requires the bytes that servers may leave out. */
const tokenOf = (sent: Json): LikelyToken => {
  const fields = isFields(sent) ? sent : {}
  const token = stringOf(fields["token"])
  const { bytes, logprob } = fields
  return {
    token,
    bytes: Array.isArray(bytes) ? bytes : [...new TextEncoder().encode(token)],
    logprob: typeof logprob === "number" ? logprob : 0
  }
}

const listIn = (value: Json | undefined): ReadonlyArray<Json> => Array.isArray(value) ? value : []

/** The tokens of a choice's text with their log probabilities, each with the other candidates of its step. */
export const tokensIn = (choice: JsonFields | undefined) => {
  const logprobs = choice?.["logprobs"]
  const content = isFields(logprobs) ? logprobs["content"] : undefined
  return listIn(content).map((sent) => ({
    ...tokenOf(sent),
    top_logprobs: listIn(isFields(sent) ? sent["top_logprobs"] : undefined).map(tokenOf)
  }))
}

/** A citation of a page. `from` and `to` are places in the text, as the server counts them; both are 0 if it names none. */
export interface Citation {
  readonly from: number
  readonly to: number
  readonly title: string
  readonly url: string
  /** What the page says, from servers that quote it. */
  readonly quote: string
}

/** The facts of an annotation that cites a page. Some servers leave out the inner object. */
const citationOf = (annotation: Json): JsonFields | undefined => {
  if (!isFields(annotation)) return undefined
  const inner = annotation["url_citation"]
  if (isFields(inner)) return inner
  return annotation["type"] === "url_citation" ? annotation : undefined
}

/** The citations of pages in a message. */
export const citationsIn = (message: JsonFields | undefined): ReadonlyArray<Citation> =>
  listIn(message?.["annotations"]).flatMap((annotation: Json) => {
    const citation = citationOf(annotation)
    const url = stringOf(citation?.["url"])
    if (citation === undefined || url === "") return []
    const [from, to] = [citation["start_index"], citation["end_index"]]
      .map((index) => typeof index === "number" ? index : 0) as [number, number]
    return [{ from, to, title: stringOf(citation["title"]), url, quote: stringOf(citation["content"]) }]
  })
