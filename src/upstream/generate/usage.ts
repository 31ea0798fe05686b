/** Token counts of content-generation servers. */
import type { JsonRecord } from "../../domain/json.ts"
import type { PartialUsage } from "../../domain/UpstreamEvent.ts"
import { asCount } from "../json.ts"

/**
 * The token counts of a `usageMetadata`. Servers omit counts of 0. The thoughts are counted beside the candidates, and what the
 * vendor's tools put into the prompt beside the prompt.
 */
export const usageOf = (value: JsonRecord): PartialUsage => {
  const prompt = asCount(value["promptTokenCount"])
  const tools = asCount(value["toolUsePromptTokenCount"]) ?? 0
  const candidates = asCount(value["candidatesTokenCount"])
  const thoughts = asCount(value["thoughtsTokenCount"])
  const total = asCount(value["totalTokenCount"])
  const cached = asCount(value["cachedContentTokenCount"])
  const beside = prompt !== undefined && total !== undefined && total > prompt + tools
    ? total - prompt - tools
    : undefined
  const completion = candidates === undefined ? beside ?? thoughts : candidates + (thoughts ?? 0)
  return {
    ...(prompt === undefined ? {} : { promptTokens: prompt + tools }),
    ...(completion === undefined ? {} : { completionTokens: completion }),
    ...(thoughts === undefined ? {} : { reasoningTokens: thoughts }),
    ...(cached === undefined ? {} : { cachedTokens: cached })
  }
}
