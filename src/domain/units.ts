/**
 * Units: everything that has a price, and how much of each a try used. Pure.
 */

/** Units of tokens, whose prices are for a million. Each names the units that stand in for its price, in order. */
export const standIns = {
  input: [],
  cached_input: ["input"],
  cache_write: ["input"],
  cache_write_1h: ["cache_write", "input"],
  output: [],
  reasoning: ["output"],
  audio_input: ["input"],
  audio_cached_input: ["cached_input", "audio_input", "input"],
  audio_output: ["output"],
  image_input: ["input"],
  image_output: ["output"]
} as const satisfies { readonly [unit: string]: ReadonlyArray<string> }

export type TokenUnit = keyof typeof standIns

export const tokenUnits = Object.keys(standIns) as ReadonlyArray<TokenUnit>

/** Units of pieces, whose prices are for one. */
export const pieceUnits = [
  "per_request",
  "per_image",
  "per_input_image",
  "per_second",
  "per_character",
  "per_query",
  "per_page"
] as const

export type PieceUnit = (typeof pieceUnits)[number]

/** The calls of a vendor's tool are the unit `per_tool_call.<tool>`. */
export const toolUnit = "per_tool_call"

/** A service tier without a price is listed as `tiers.<tier>`. */
export const tierUnit = "tiers"

/** Tokens of a prompt or a reply that a server may count; a higher count is ignored. */
export const mostTokens = 1e9

/** US dollars of 10^-9 that a server may charge for a reply, ten thousand dollars; a higher cost is ignored. */
export const mostServerCost = 10_000n * 10n ** 9n

/** What a server reports beside the counts of plain tokens. Counts that exceed their whole are cut to it. */
export interface UsageDetails {
  /** Part of the written tokens that the cache keeps for an hour; the others are kept for five minutes. */
  readonly cacheWrite1hTokens?: number | undefined
  /** Parts of the prompt. */
  readonly audioTokens?: number | undefined
  readonly imageTokens?: number | undefined
  /** Parts of the cached tokens by modality; without any, cached tokens are text as far as the prompt has text. */
  readonly cachedAudioTokens?: number | undefined
  readonly cachedImageTokens?: number | undefined
  /** Parts of the completion. */
  readonly audioOutputTokens?: number | undefined
  readonly imageOutputTokens?: number | undefined
  /** Pieces, without the request itself. */
  readonly pieces?: { readonly [Unit in PieceUnit]?: number } | undefined
  /** Calls of the vendor's tools, by tool. */
  readonly toolCalls?: { readonly [tool: string]: number } | undefined
  /** The service tier that the reply names, in lower case; `undefined` for the base. */
  readonly tier?: string | undefined
  /** Fields of the usage body whose values are words, such as `speed`. */
  readonly words?: { readonly [field: string]: string } | undefined
  /** What the server itself charges, in US dollars of 10^-9; at most `mostServerCost`. */
  readonly serverCost?: bigint | undefined
  /** The server names a cost that no reply has, so that the prices count. */
  readonly isCostRefused?: true | undefined
}

/** Token counts of a finished reply; `completionTokens` includes `reasoningTokens`. */
export interface Usage {
  readonly promptTokens: number
  readonly completionTokens: number
  readonly reasoningTokens: number
  readonly cachedTokens: number
  /** Part of `promptTokens` that the upstream wrote to its cache, if it says so. */
  readonly cacheWriteTokens?: number | undefined
  /** What the bill knows beside plain tokens; `undefined` for a reply of plain tokens. */
  readonly details?: UsageDetails | undefined
}

/** A part of a whole. */
const within = (part: number | undefined, whole: number): number => part === undefined ? 0 : Math.min(part, whole)

/**
 * Calls `visit` with each unit of a usage that is not 0, the units of tokens first. A request is one `per_request`.
 *
 * Written tokens are text as far as the rest of the prompt has text, then pictures, then audio. Cached pictures have the price of cached
 * tokens.
 */
export const eachUnit = (usage: Usage, visit: (unit: string, amount: number) => void): void => {
  const { completionTokens: output, details, promptTokens: prompt } = usage
  const give = (unit: TokenUnit, amount: number) => {
    if (amount > 0) visit(unit, amount)
  }
  const cached = Math.min(usage.cachedTokens, prompt)
  const written = within(usage.cacheWriteTokens, prompt - cached)
  if (details === undefined) {
    const reasoning = Math.min(usage.reasoningTokens, output)
    give("input", prompt - cached - written)
    give("cached_input", cached)
    give("cache_write", written)
    give("output", output - reasoning)
    give("reasoning", reasoning)
    return visit("per_request", 1)
  }
  const audio = within(details.audioTokens, prompt)
  const images = within(details.imageTokens, prompt - audio)
  const text = prompt - audio - images
  let cachedAudio = within(details.cachedAudioTokens, Math.min(audio, cached))
  const cachedImages = within(details.cachedImageTokens, Math.min(images, cached - cachedAudio))
  const cachedText = Math.min(text, cached - cachedAudio - cachedImages)
  const more = Math.min(audio - cachedAudio, cached - cachedAudio - cachedImages - cachedText)
  cachedAudio += more
  const otherCached = cached - cachedAudio
  const writtenText = Math.min(text - cachedText, written)
  const freshImages = images - (otherCached - cachedText)
  const writtenImages = Math.min(freshImages, written - writtenText)
  const hour = within(details.cacheWrite1hTokens, written)
  give("input", text - cachedText - writtenText)
  give("cached_input", otherCached)
  give("cache_write", written - hour)
  give("cache_write_1h", hour)
  give("audio_input", audio - cachedAudio - (written - writtenText - writtenImages))
  give("audio_cached_input", cachedAudio)
  give("image_input", freshImages - writtenImages)
  const audioOutput = within(details.audioOutputTokens, output)
  const imageOutput = within(details.imageOutputTokens, output - audioOutput)
  const reasoning = Math.min(usage.reasoningTokens, output - audioOutput - imageOutput)
  give("output", output - audioOutput - imageOutput - reasoning)
  give("reasoning", reasoning)
  give("audio_output", audioOutput)
  give("image_output", imageOutput)
  visit("per_request", 1)
  for (const unit of pieceUnits) {
    const amount = details.pieces?.[unit]
    if (amount !== undefined && amount > 0) visit(unit, amount)
  }
  for (const tool in details.toolCalls) visit(`${toolUnit}.${tool}`, details.toolCalls[tool]!)
}
