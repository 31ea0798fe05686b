/**
 * The token counts that the reference upstream gives for a reply: those of the gateway's own estimator.
 */
import { estimateTokens } from "../domain/estimateTokens.ts"
import type { Fields } from "./documents.ts"
import type { Reply } from "./Reply.ts"

interface Tokens {
  readonly reasoning: number
  /** Reasoning included. */
  readonly reply: number
}

const count = (reply: Reply, sent: number): Tokens => {
  const text = { Think: "", Say: "" }
  for (let i = 0; i < sent; i++) {
    const piece = reply.pieces[i]!
    if (piece._tag === "Think" || piece._tag === "Say") text[piece._tag] += piece.text
  }
  const reasoning = estimateTokens(text.Think)
  return { reasoning, reply: reasoning + estimateTokens(text.Say) }
}

/** What is told of token counts when a round ends after `sent` pieces: fields of `response`. */
export const usageAtEnd = (reply: Reply, sent: number): Fields => {
  const usage = reply.usage
  switch (usage._tag) {
    case "None":
    case "Zero":
      return []
    case "Given":
      return [["token_usage", usage.value]]
    case "Accumulated":
      return [["accumulated_token_usage", usage.value]]
    case "Computed": {
      const tokens = count(reply, sent)
      const parts = {
        prompt_tokens: reply.promptTokens,
        completion_tokens: tokens.reply,
        reasoning_tokens: tokens.reasoning
      }
      switch (usage.form) {
        case "accumulated":
        case "running":
          return [["accumulated_token_usage", tokens.reply]]
        case "total":
          return [["token_usage", tokens.reply]]
        case "parts":
          return [["token_usage", parts]]
        case "both":
          return [["token_usage", parts], ["accumulated_token_usage", tokens.reply + 1000]]
      }
    }
  }
}

/** What a snapshot says of token counts once `sent` pieces have left. */
export const usageInSnapshot = (reply: Reply, sent: number): Fields => {
  if (reply.usage._tag === "None") return []
  const told = sent === 0 ? undefined : usageAtEnd(reply, sent).find(([name]) => name === "accumulated_token_usage")
  return [told ?? ["accumulated_token_usage", 0]]
}

/** What is told after every piece, where that is asked for: a share of the whole, so that each costs the same. */
export const runningUsage = (reply: Reply): (sent: number) => Fields => {
  if (reply.usage._tag !== "Computed" || reply.usage.form !== "running") return () => []
  const whole = count(reply, reply.pieces.length).reply
  return (sent) => [["accumulated_token_usage", Math.round(whole * sent / reply.pieces.length)]]
}
