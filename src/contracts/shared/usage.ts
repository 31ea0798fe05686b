/**
 * Token counts by all the names that OpenAI-compatible servers give them.
 *
 * OpenAI, vLLM, SGLang and Ollama use the documented names. DeepSeek counts `prompt_cache_hit_tokens`, Moonshot `cached_tokens`,
 * LiteLLM and others the names of the messages API. Moonshot puts the usage into the choice, Groq into `x_groq`. llama.cpp has
 * `timings`.
 */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { UsageDetails } from "../../domain/units.ts"
import type { PartialUsage } from "../../domain/UpstreamEvent.ts"
import { asTokens } from "./json.ts"
import { chargedBy, saidDetails, tierOf, wordsOf } from "./usageDetails.ts"

type Path = readonly [field: string, detail?: string]

const prompt: ReadonlyArray<Path> = [["prompt_tokens"], ["input_tokens"]]
const completion: ReadonlyArray<Path> = [["completion_tokens"], ["output_tokens"]]
const reasoning: ReadonlyArray<Path> = [
  ["completion_tokens_details", "reasoning_tokens"],
  ["output_tokens_details", "reasoning_tokens"],
  ["reasoning_tokens"]
]
const cached: ReadonlyArray<Path> = [
  ["prompt_tokens_details", "cached_tokens"],
  ["input_tokens_details", "cached_tokens"],
  ["prompt_cache_hit_tokens"],
  ["cached_tokens"],
  ["cache_read_input_tokens"]
]
const written: ReadonlyArray<Path> = [
  ["prompt_tokens_details", "cache_write_tokens"],
  ["prompt_tokens_details", "cache_creation_tokens"],
  ["input_tokens_details", "cache_write_tokens"],
  ["cache_write_tokens"],
  ["cache_creation_input_tokens"]
]

/** Parts of the prompt and of the completion. Transcriptions have `input_token_details`. */
const audio: ReadonlyArray<Path> = [
  ["prompt_tokens_details", "audio_tokens"],
  ["input_tokens_details", "audio_tokens"],
  ["input_token_details", "audio_tokens"]
]
const images: ReadonlyArray<Path> = [["prompt_tokens_details", "image_tokens"], [
  "input_tokens_details",
  "image_tokens"
]]
const audioOutput: ReadonlyArray<Path> = [
  ["completion_tokens_details", "audio_tokens"],
  ["output_tokens_details", "audio_tokens"]
]
const imageOutput: ReadonlyArray<Path> = [
  ["completion_tokens_details", "image_tokens"],
  ["output_tokens_details", "image_tokens"]
]

const paths = [...prompt, ...completion, ...reasoning, ...cached, ...written]

/** The fields that are read; of an object, those within it. */
export const countedFields: { readonly [field: string]: true | { readonly [detail: string]: true } } = Object
  .fromEntries(
    paths.map(([field, detail]) => {
      const details = paths.flatMap(([name, inner]) => name === field && inner !== undefined ? [[inner, true]] : [])
      return [field, detail === undefined ? true : Object.fromEntries(details)]
    })
  )

const read = (usage: JsonRecord, paths: ReadonlyArray<Path>): number | undefined => {
  for (const [field, detail] of paths) {
    const value = usage[field]
    const count = asTokens(detail === undefined ? value : isRecord(value) ? value[detail] : undefined)
    if (count !== undefined) return count
  }
  return undefined
}

const nothingBeside: BesideUsage = { tier: undefined, toolCalls: undefined }

/** The usage of a chunk, wherever the server puts it. */
export const usageIn = (chunk: JsonRecord, choice: unknown): JsonRecord | undefined => {
  if (isRecord(chunk["usage"])) return chunk["usage"]
  if (isRecord(choice) && isRecord(choice["usage"])) return choice["usage"]
  const groq = chunk["x_groq"]
  return isRecord(groq) && isRecord(groq["usage"]) ? groq["usage"] : undefined
}

/** What a reply says beside its usage: its service tier, and calls of the vendor's tools. */
interface BesideUsage {
  readonly tier: unknown
  readonly toolCalls: UsageDetails["toolCalls"]
}

/** The parts of a usage beside plain tokens; `undefined` without any, for which nothing is made. */
const detailsOf = (value: JsonRecord, { tier: named, toolCalls }: BesideUsage): UsageDetails | undefined => {
  const audioTokens = read(value, audio)
  const imageTokens = read(value, images)
  const audioOutputTokens = read(value, audioOutput)
  const imageOutputTokens = read(value, imageOutput)
  const tier = tierOf(named ?? value["service_tier"])
  const words = wordsOf(value)
  const charged = chargedBy(value)
  const { seconds } = value
  const pieces = typeof seconds === "number" && seconds > 0 && seconds < 1e9 ? { per_second: seconds } : undefined
  const isPlain = !audioTokens && !imageTokens && !audioOutputTokens && !imageOutputTokens && tier === undefined &&
    words === undefined && charged === undefined && pieces === undefined && toolCalls === undefined
  return isPlain ? undefined : saidDetails({
    audioTokens,
    imageTokens,
    audioOutputTokens,
    imageOutputTokens,
    pieces,
    toolCalls,
    tier,
    words,
    ...charged
  })
}

/**
 * The token counts of a usage, by the vendors' contracts: `CompletionUsage` and `ResponseUsage` of the SDK of OpenAI. Missing counts are
 * omitted, so that they do not hide earlier ones. The completion has the rejected tokens of predictions.
 */
export const usageOf = (value: JsonRecord, beside: BesideUsage = nothingBeside): PartialUsage => {
  const usage: { -readonly [Name in keyof PartialUsage]: PartialUsage[Name] } = {}
  const total = asTokens(value["total_tokens"])
  const promptTokens = read(value, prompt)
  const completionTokens = read(value, completion)
  const reasoningTokens = read(value, reasoning)
  const cachedTokens = read(value, cached)
  const cacheWriteTokens = read(value, written)
  if (promptTokens !== undefined) usage.promptTokens = promptTokens
  if (completionTokens !== undefined) {
    // Some servers count the reasoning beside the completion, which only the total shows.
    const isBeside = reasoningTokens !== undefined && reasoningTokens > 0 && promptTokens !== undefined &&
      total === promptTokens + completionTokens + reasoningTokens
    usage.completionTokens = isBeside ? completionTokens + reasoningTokens : completionTokens
  } else if (total !== undefined && promptTokens !== undefined && total >= promptTokens) {
    usage.completionTokens = total - promptTokens
  }
  if (reasoningTokens !== undefined) usage.reasoningTokens = reasoningTokens
  if (cachedTokens !== undefined) usage.cachedTokens = cachedTokens
  if (cacheWriteTokens !== undefined) usage.cacheWriteTokens = cacheWriteTokens
  const details = detailsOf(value, beside)
  if (details !== undefined) usage.details = details
  return usage
}

/** The counts in llama.cpp's `timings`, which leave out the cached part of the prompt. */
export const timingsUsage = (chunk: JsonRecord): PartialUsage | undefined => {
  const timings = chunk["timings"]
  if (!isRecord(timings)) return undefined
  const [fresh, cachedTokens = 0, completionTokens] = ["prompt_n", "cache_n", "predicted_n"]
    .map((name) => asTokens(timings[name]))
  if (fresh === undefined || completionTokens === undefined) return undefined
  return { promptTokens: fresh + cachedTokens, completionTokens, cachedTokens }
}
