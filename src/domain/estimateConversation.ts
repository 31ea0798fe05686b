/**
 * Prompt tokens of a conversation: one figure for `count_tokens` in every style and for usage that the upstream left out.
 */
import type { Conversation, Part } from "./Conversation.ts"
import { estimateTokens } from "./estimateTokens.ts"

/** What each turn costs beyond its text: the markers that separate it. */
const perTurn = 3
/** What an image costs, roughly a medium one of the vendors' tables. */
const perImage = 765

const partTokens = (part: Part): number => {
  switch (part._tag) {
    case "Text":
    case "Reasoning":
      return estimateTokens(part.text)
    case "Image":
      return perImage
    case "File":
      return part.data === undefined ? perTurn : Math.ceil(part.data.length / 4)
    case "Call":
      return perTurn + estimateTokens(part.name) + estimateTokens(part.arguments)
    case "Result":
      return part.content.reduce((sum, content) => sum + partTokens(content), perTurn)
  }
}

/** Estimates the tokens of system, messages and tools; see `estimateTokens` for how far it is off. */
export const estimateConversation = (conversation: Conversation): number => {
  let tokens = 0
  for (const turn of conversation.turns) {
    tokens += perTurn
    for (const part of turn.parts) tokens += partTokens(part)
  }
  for (const tool of conversation.tools) {
    tokens += perTurn + estimateTokens(tool.name) + estimateTokens(tool.description ?? "")
    if (tool.parameters !== undefined) tokens += estimateTokens(JSON.stringify(tool.parameters))
  }
  if (conversation.output?._tag === "JsonSchema") tokens += estimateTokens(JSON.stringify(conversation.output.schema))
  return tokens
}
