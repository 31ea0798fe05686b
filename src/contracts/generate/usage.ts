/** Token counts of content-generation servers. */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { UsageDetails } from "../../domain/units.ts"
import type { PartialUsage } from "../../domain/UpstreamEvent.ts"
import { asTokens } from "../shared/json.ts"
import { chargedBy, saidDetails, tierOf, wordsOf } from "../shared/usageDetails.ts"

/** The tokens of a modality in lists of `ModalityTokenCount`. */
const ofModality = (modality: string, ...lists: ReadonlyArray<unknown>): number =>
  lists.reduce<number>((sum, list) => {
    for (const each of Array.isArray(list) ? list as ReadonlyArray<unknown> : []) {
      if (isRecord(each) && each["modality"] === modality) sum += asTokens(each["tokenCount"]) ?? 0
    }
    return sum
  }, 0)

/** What a reply says beside its usage: its service tier, and the queries of the vendor's search. */
interface BesideUsage {
  readonly tier: unknown
  readonly searches: number
}

/** The parts of a usage beside plain tokens; `undefined` without any. */
const detailsOf = (value: JsonRecord, { searches, tier: named }: BesideUsage): UsageDetails | undefined => {
  const { cacheTokensDetails: cached, candidatesTokensDetails: output, promptTokensDetails: prompt } = value
  const tools = value["toolUsePromptTokensDetails"]
  return saidDetails({
    audioTokens: ofModality("AUDIO", prompt, tools),
    imageTokens: ofModality("IMAGE", prompt, tools),
    cachedAudioTokens: ofModality("AUDIO", cached),
    cachedImageTokens: ofModality("IMAGE", cached),
    audioOutputTokens: ofModality("AUDIO", output),
    imageOutputTokens: ofModality("IMAGE", output),
    toolCalls: searches === 0 ? undefined : { google_search: searches },
    tier: tierOf(named ?? value["serviceTier"]),
    words: wordsOf(value),
    ...chargedBy(value)
  })
}

/**
 * The token counts of a `usageMetadata`, by the contract of `GenerateContentResponseUsageMetadata` in the SDK of Google. Servers omit counts of
 * 0. The prompt has the cached tokens. The thoughts are counted beside the candidates, and what the vendor's tools put into the prompt beside
 * the prompt.
 */
export const usageOf = (value: JsonRecord, beside: BesideUsage): PartialUsage => {
  const prompt = asTokens(value["promptTokenCount"])
  const tools = asTokens(value["toolUsePromptTokenCount"]) ?? 0
  const candidates = asTokens(value["candidatesTokenCount"])
  const thoughts = asTokens(value["thoughtsTokenCount"])
  const total = asTokens(value["totalTokenCount"])
  const cached = asTokens(value["cachedContentTokenCount"])
  const rest = prompt !== undefined && total !== undefined && total > prompt + tools
    ? total - prompt - tools
    : undefined
  const completion = candidates === undefined ? rest ?? thoughts : candidates + (thoughts ?? 0)
  const details = detailsOf(value, beside)
  return {
    ...(prompt === undefined ? {} : { promptTokens: prompt + tools }),
    ...(completion === undefined ? {} : { completionTokens: completion }),
    ...(thoughts === undefined ? {} : { reasoningTokens: thoughts }),
    ...(cached === undefined ? {} : { cachedTokens: cached }),
    ...(details === undefined ? {} : { details })
  }
}
