/**
 * Token counts out of the document of a session reply.
 */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { PartialUsage } from "../../domain/UpstreamEvent.ts"

const mostTokens = 1e12

const tokens = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= mostTokens ? value : undefined

/**
 * What is known once the response is read: `known` itself where that says nothing new. The last values count, over all
 * rounds; `token_usage` wins where the document has both.
 */
export const readUsage = (response: JsonRecord, known: PartialUsage): PartialUsage => {
  const { accumulated_token_usage: accumulated, token_usage: given } = response
  const total = tokens(accumulated)
  const detail = isRecord(given) ? given : undefined
  const promptTokens = tokens(detail?.["prompt_tokens"])
  // Documents start with a total of 0, which says nothing.
  const completion = tokens(detail === undefined ? given : detail["completion_tokens"]) ??
    (total === 0 ? undefined : total)
  const reasoningTokens = tokens(detail?.["reasoning_tokens"])
  const changed = (promptTokens !== undefined && promptTokens !== known.promptTokens) ||
    (completion !== undefined && completion !== known.completionTokens) ||
    (reasoningTokens !== undefined && reasoningTokens !== known.reasoningTokens)
  if (!changed) return known
  return {
    ...known,
    ...(promptTokens === undefined ? {} : { promptTokens }),
    ...(completion === undefined ? {} : { completionTokens: completion }),
    ...(reasoningTokens === undefined ? {} : { reasoningTokens })
  }
}
