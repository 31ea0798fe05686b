/**
 * Token counts of one reply. A count that the upstream did not give is absent here and estimated by the completion service.
 */

/** What an upstream said of token counts so far; the last value of each field counts. */
export interface PartialUsage {
  readonly promptTokens?: number | undefined
  /** All tokens of the reply, reasoning included. */
  readonly completionTokens?: number | undefined
  readonly reasoningTokens?: number | undefined
  /** Part of `promptTokens` that the upstream served from its cache. */
  readonly cachedTokens?: number | undefined
}

/** Token counts of a finished reply; `completionTokens` includes `reasoningTokens`. */
export interface Usage {
  readonly promptTokens: number
  readonly completionTokens: number
  readonly reasoningTokens: number
  readonly cachedTokens: number
}
