/** Token counts of a messages server. */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { PartialUsage } from "../../domain/UpstreamEvent.ts"
import { asCount } from "../json.ts"

/** The counts so far. The vendor counts tokens that were read from its cache, or written to it, beside the other input. */
export const usageOf = (counts: JsonRecord, isLast: boolean): PartialUsage => {
  const input = asCount(counts["input_tokens"])
  const cachedTokens = asCount(counts["cache_read_input_tokens"])
  const cacheWriteTokens = asCount(counts["cache_creation_input_tokens"])
  const details = counts["output_tokens_details"]
  return {
    promptTokens: input === undefined ? undefined : input + (cachedTokens ?? 0) + (cacheWriteTokens ?? 0),
    cachedTokens,
    cacheWriteTokens,
    completionTokens: isLast ? asCount(counts["output_tokens"]) : undefined,
    reasoningTokens: isLast && isRecord(details) ? asCount(details["thinking_tokens"]) : undefined
  }
}
