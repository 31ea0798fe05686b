/**
 * Whether and how much to think, in the format of a messages server.
 */
import type { Thinking } from "../../domain/Conversation.ts"
import type { Json } from "../../domain/json.ts"
import { budgetTokens, type ThinkingWords } from "../shared/serverThinking.ts"

/** The least budget that the vendor accepts, in tokens. */
export const leastBudget = 1_024

/** Efforts by the vendor's names. */
const efforts: ReadonlyMap<string, string> = new Map([["minimal", "low"]])

/** What a request says of thinking, and its limit of output, which includes the thinking. */
export interface SaidThinking {
  readonly thinking: Json | undefined
  readonly effort: string | undefined
  readonly maxTokens: number
}

/**
 * Says it with a budget, which every model that thinks accepts, or with `effort` by the vendor's newer words. `limit` is the caller's
 * limit of output: a budget has to be below it. Without a limit of the caller's the
 * budget is added to the default.
 */
export const sayThinking = (
  said: Thinking | undefined,
  words: ThinkingWords | undefined,
  limit: number | undefined,
  defaultLimit: number
): SaidThinking => {
  const maxTokens = limit ?? defaultLimit
  const nothing: SaidThinking = { thinking: undefined, effort: undefined, maxTokens }
  if (said === undefined || words === "none") return nothing
  const { effort, mode } = said
  if (mode === "off") return { ...nothing, thinking: { type: "disabled" } }
  if (words === "effort") {
    return {
      ...nothing,
      thinking: mode === "on" ? { type: "adaptive" } : undefined,
      effort: effort === undefined ? undefined : efforts.get(effort.toLowerCase()) ?? effort
    }
  }
  const wanted = budgetTokens(said)
  if (wanted === undefined) return nothing
  const budget = Math.max(leastBudget, wanted)
  if (limit === undefined) {
    return { ...nothing, thinking: { type: "enabled", budget_tokens: budget }, maxTokens: defaultLimit + budget }
  }
  return { ...nothing, thinking: { type: "enabled", budget_tokens: Math.min(budget, limit - 1) } }
}
