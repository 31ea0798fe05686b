/**
 * Thinking in the format of an OpenAI-compatible server: whether and how much to think, and the thinking of earlier turns.
 */
import { type Conversation, type Thinking, thinkingWords } from "../../domain/Conversation.ts"
import { isRecord, type Json } from "../../domain/json.ts"
import { budgetTokens, lowBudget, mediumBudget, type ThinkingWords } from "./serverThinking.ts"

/** How much to think, as an effort; `undefined` if the caller leaves it to the server. */
export const effortOf = ({ budget, effort, mode }: Thinking): string | undefined => {
  if (mode === "off") return "none"
  if (effort !== undefined) return effort
  if (budget !== undefined) return budget <= lowBudget ? "low" : budget <= mediumBudget ? "medium" : "high"
  return mode === "on" ? "medium" : undefined
}

const budgetOf = (thinking: Thinking): Json | undefined => {
  if (thinking.mode === "off") return { type: "disabled" }
  const tokens = budgetTokens(thinking)
  return tokens === undefined ? undefined : { type: "enabled", budget_tokens: tokens }
}

/**
 * Adds what the caller wants of thinking to a request that has the caller's own fields for the server already. Those win: what they
 * say is not said again in other words, unless the model's entry names its words.
 */
export const addThinking = (
  request: Record<string, Json>,
  { thinking }: Pick<Conversation, "thinking">,
  words: ThinkingWords | undefined
): void => {
  if (thinking === undefined) return
  const isSaidByCaller = thinking.fields === undefined && thinkingWords.some((name) => Object.hasOwn(request, name))
  switch (words ?? (isSaidByCaller ? "none" : "effort")) {
    case "effort": {
      const effort = effortOf(thinking)
      if (effort !== undefined) request["reasoning_effort"] ??= effort
      return
    }
    case "template": {
      if (thinking.mode === "auto") return
      const own = request["chat_template_kwargs"] ?? {}
      if (isRecord(own)) request["chat_template_kwargs"] = { enable_thinking: thinking.mode === "on", ...own }
      return
    }
    case "budget": {
      const budget = budgetOf(thinking)
      if (budget !== undefined) request["thinking"] ??= budget
      return
    }
    case "none":
  }
}

/** The names by which a server has sent thinking so far. */
export interface ReasoningNames {
  content: boolean
  reasoning: boolean
  details: boolean
}

/** The names of a server that has sent none. */
export const unknownNames = (): ReasoningNames => ({ content: false, reasoning: false, details: false })

/** The thinking of an earlier turn, by the server's own names; by the two usual ones while they are unknown. */
export const historyFields = (text: string, names: ReasoningNames): { readonly [field: string]: Json } => {
  const isKnown = names.content || names.reasoning || names.details
  return {
    ...(names.content || !isKnown ? { reasoning_content: text } : {}),
    ...(names.reasoning || !isKnown ? { reasoning: text } : {}),
    ...(names.details ? { reasoning_details: [{ type: "reasoning.text", text }] } : {})
  }
}
