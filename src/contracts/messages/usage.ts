/** Token counts of a messages server. */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { UsageDetails } from "../../domain/units.ts"
import type { PartialUsage } from "../../domain/UpstreamEvent.ts"
import { asTokens } from "../shared/json.ts"
import { chargedBy, saidDetails, tierOf, toolCallsOf, wordsOf } from "../shared/usageDetails.ts"

/** The calls of the vendor's tools: `web_search_requests` counts those of `web_search`. */
const toolCallsIn = (counts: unknown): UsageDetails["toolCalls"] =>
  isRecord(counts)
    ? toolCallsOf(
      Object.entries(counts).flatMap(([name, count]) =>
        name.endsWith("_requests") ? [[name.slice(0, -"_requests".length), count] as const] : []
      )
    )
    : undefined

/**
 * The counts so far, by the contract of `Usage` in the SDK of Anthropic. The vendor counts tokens that were read from its cache, or written to
 * it, beside the other input. Thinking is a part of the output.
 */
export const usageOf = (counts: JsonRecord, isLast: boolean): PartialUsage => {
  const input = asTokens(counts["input_tokens"])
  const cachedTokens = asTokens(counts["cache_read_input_tokens"])
  const creation = isRecord(counts["cache_creation"]) ? counts["cache_creation"] : undefined
  const hour = asTokens(creation?.["ephemeral_1h_input_tokens"])
  const minutes = asTokens(creation?.["ephemeral_5m_input_tokens"])
  const cacheWriteTokens = asTokens(counts["cache_creation_input_tokens"]) ??
    (hour === undefined && minutes === undefined ? undefined : (hour ?? 0) + (minutes ?? 0))
  const output = counts["output_tokens_details"]
  const toolCalls = toolCallsIn(counts["server_tool_use"])
  const tier = tierOf(counts["service_tier"])
  const words = wordsOf(counts)
  const charged = chargedBy(counts)
  const isPlain = !hour && toolCalls === undefined && tier === undefined && words === undefined &&
    charged === undefined
  const usage = {
    promptTokens: input === undefined ? undefined : input + (cachedTokens ?? 0) + (cacheWriteTokens ?? 0),
    cachedTokens,
    cacheWriteTokens,
    completionTokens: isLast ? asTokens(counts["output_tokens"]) : undefined,
    reasoningTokens: isLast && isRecord(output) ? asTokens(output["thinking_tokens"]) : undefined
  }
  return isPlain
    ? usage
    : { ...usage, details: saidDetails({ cacheWrite1hTokens: hour, toolCalls, tier, words, ...charged }) }
}
