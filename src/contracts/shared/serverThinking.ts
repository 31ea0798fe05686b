/**
 * Thinking as servers of several vendors read it: by an effort, a switch in the chat template, or a budget of tokens.
 */
import { type Thinking, thinkingWords } from "../../domain/Conversation.ts"

/** The words in which a server reads whether and how much to think (`upstream.models`). */
export type ThinkingWords = "effort" | "template" | "budget" | "none"

/** Fields of other servers for thinking that the contracts of vendors have fields of their own for; template arguments may say more. */
export const translatedThinking: ReadonlySet<string> = new Set(
  thinkingWords.filter((name) => name !== "chat_template_kwargs")
)

/** The turns whose thinking goes back: all, those since the last question, or none. */
export type HistoryReasoning = "all" | "current" | "none"

/** Budgets up to which an effort is low and medium. */
export const lowBudget = 2_048
export const mediumBudget = 8_192

/** The budgets of efforts; an unknown one has that of `high`. */
const budgets: ReadonlyMap<string, number> = new Map([
  ["minimal", 1_024],
  ["low", lowBudget],
  ["medium", mediumBudget]
])
const highBudget = 16_384

/** The tokens to think with; `undefined` if neither an amount nor thinking is asked for. */
export const budgetTokens = ({ budget, effort, mode }: Thinking): number | undefined =>
  budget ?? (effort !== undefined
    ? budgets.get(effort.toLowerCase()) ?? highBudget
    : mode === "on"
    ? mediumBudget
    : undefined)

/** True if a server with these words receives all that the caller's vendor fields say of thinking. */
export const saysThinking = ({ budget, effort, mode }: Thinking, words: ThinkingWords = "effort"): boolean => {
  const saysAmount = effort !== undefined || budget !== undefined
  if (mode === "auto" && !saysAmount) return true
  return words === "template" ? mode === "off" || !saysAmount : words !== "none"
}
