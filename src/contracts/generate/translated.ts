/**
 * What an OpenAI-compatible server says beyond text and calls, in the fields of this style.
 */
import type { Json, JsonFields } from "../../domain/json.ts"
import type { Usage } from "../../domain/ReplyEvent.ts"
import { isFields } from "../../domain/replyExtras.ts"
import type { ServerFields } from "../shared/Family.ts"
import { type Citation, tokensIn } from "../shared/serverExtras.ts"
import type { ModalityTokens, UsageMetadata } from "./schema.ts"

type Tokens = ReturnType<typeof tokensIn>

const candidate = ({ logprob, token }: Tokens[number]["top_logprobs"][number]) => ({ token, logProbability: logprob })

/** Log probabilities as the candidate's `logprobsResult`, with the other candidates of each step if the server names any. */
const logprobsResult = (tokens: Tokens): JsonFields => {
  const hasOthers = tokens.some(({ top_logprobs: others }) => others.length > 0)
  return {
    chosenCandidates: tokens.map(candidate),
    ...(hasOthers
      ? { topCandidates: tokens.map(({ top_logprobs: others }) => ({ candidates: others.map(candidate) })) }
      : {})
  }
}

/** Fields of a choice as those of a candidate. `null` withdraws what was said before. */
export const candidateFields = (choice: JsonFields): JsonFields => {
  if (choice["logprobs"] === null) return { logprobsResult: null }
  const tokens = tokensIn(choice)
  return tokens.length === 0 ? {} : { logprobsResult: logprobsResult(tokens) }
}

/** The citations of a whole reply as fields of its candidate. Each page stands once. */
export const citedFields = (citations: ReadonlyArray<Citation>): JsonFields => {
  if (citations.length === 0) return {}
  const indexes = new Map<string, number>()
  const groundingChunks: Array<JsonFields> = []
  const groundingSupports: Array<JsonFields> = []
  for (const { from, title, to, url } of citations) {
    const index = indexes.get(url) ?? groundingChunks.length
    if (!indexes.has(url)) {
      indexes.set(url, index)
      groundingChunks.push({ web: { uri: url, ...(title === "" ? {} : { title }) } })
    }
    if (to > from) {
      groundingSupports.push({ segment: { startIndex: from, endIndex: to }, groundingChunkIndices: [index] })
    }
  }
  return {
    groundingMetadata: { groundingChunks, ...(groundingSupports.length === 0 ? {} : { groundingSupports }) }
  }
}

/** Kinds of tokens by their names in the details of a usage. */
const modalities = [["image_tokens", "IMAGE"], ["audio_tokens", "AUDIO"], ["video_tokens", "VIDEO"]] as const

const countIn = (details: JsonFields, name: string): number => {
  const count = details[name]
  return typeof count === "number" && Number.isInteger(count) && count > 0 ? count : 0
}

type TokenDetails = typeof ModalityTokens.Type

/** The tokens by their kind; `undefined` if all are text. Text has those that the server does not name. */
const tokenDetails = (total: number, details: Json | undefined): ReadonlyArray<TokenDetails> | undefined => {
  if (!isFields(details)) return undefined
  const others = modalities.flatMap(([name, modality]): ReadonlyArray<TokenDetails> => {
    const tokenCount = countIn(details, name)
    return tokenCount === 0 ? [] : [{ modality, tokenCount }]
  })
  if (others.length === 0) return undefined
  const rest = others.reduce((left, { tokenCount }) => left - tokenCount, total)
  const tokenCount = countIn(details, "text_tokens") || Math.max(0, rest)
  return tokenCount === 0 ? others : [{ modality: "TEXT", tokenCount }, ...others]
}

/** The details of the token counts, from those of the server's usage. */
export const countDetails = (
  { completionTokens, promptTokens, reasoningTokens }: Usage,
  usage: JsonFields = {}
): Pick<typeof UsageMetadata.Type, "promptTokensDetails" | "candidatesTokensDetails"> => {
  const prompt = tokenDetails(promptTokens, usage["prompt_tokens_details"])
  const completion = tokenDetails(completionTokens - reasoningTokens, usage["completion_tokens_details"])
  return {
    ...(prompt === undefined ? {} : { promptTokensDetails: prompt }),
    ...(completion === undefined ? {} : { candidatesTokensDetails: completion })
  }
}

/** Media types of the formats that callers ask for. Samples without a header are OpenAI's: 24 kHz, 16 bits. */
const audioTypes: ReadonlyMap<unknown, string> = new Map([
  ["mp3", "audio/mpeg"],
  ["flac", "audio/flac"],
  ["opus", "audio/ogg"],
  ["aac", "audio/aac"],
  ["pcm16", "audio/L16;rate=24000"],
  ["pcm", "audio/L16;rate=24000"]
])

/** The media type of a reply's audio: replies do not name it, so it is the one that the request asks for in the server's words. */
export const audioTypeOf = (fields: ServerFields | undefined): string => {
  const audio = fields?.["audio"]
  return audioTypes.get(isFields(audio) ? audio["format"] : undefined) ?? "audio/wav"
}

/** Cuts Base64 text that arrives in pieces where each piece can be decoded. Holds three characters at most. */
export class Base64Pieces {
  private rest = ""

  /** The next piece; empty if it waits for more. */
  take(piece: string): string {
    const text = this.rest + piece
    const end = text.length - text.length % 4
    this.rest = text.slice(end)
    return text.slice(0, end)
  }

  /** What is left at the end. */
  end(): string {
    return this.rest
  }
}
