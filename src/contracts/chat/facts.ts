/** Facts of chat completions (https://platform.openai.com/docs/api-reference/chat). */
import type { FinishReason } from "../../domain/ReplyEvent.ts"
import type { ContractFacts } from "../Contract.ts"
import { noBounds, usualCaching } from "../shared/facts.ts"
import { type Limits, wordLimit } from "../shared/limits.ts"
import { repairsOf } from "../shared/validHistory.ts"

/** Source: the vendor's reference and the messages of its errors. Other servers accept more. */
export const chatLimits: Limits = {
  contract: "openai",
  callIds: wordLimit(40, ""),
  toolNames: wordLimit(64, "a-zA-Z0-9_-"),
  stopSequences: 4,
  texts: undefined,
  pictures: [],
  exclusive: [],
  needsProperties: true,
  history: { joinsTurns: false, begins: "anyhow", uniqueIds: "in a turn", refusedTexts: "none" }
}

/** The same for tools that a prompt declares: their calls and results are texts, of which those of one role are one message. */
export const promptLimits: Limits = { ...chatLimits, history: { ...chatLimits.history, joinsTurns: true } }

/** The most choices of a reply (https://platform.openai.com/docs/api-reference/chat/create#chat-create-n). */
export const mostChoices = 128

const limitFields = { maxTokens: "max_tokens", maxCompletionTokens: "max_completion_tokens" } as const

/** Why a reply ended. */
export const finishReasons = {
  stop: "stop",
  stop_sequence: "stop",
  tool_calls: "tool_calls",
  length: "length",
  content_filter: "content_filter"
} as const satisfies Record<FinishReason, string>

export const chatFacts: ContractFacts = {
  vendor: "openai",
  caching: usualCaching,
  finishNames: finishReasons,
  failureName: undefined,
  words: {
    turns: "messages",
    outputLimit: limitFields.maxCompletionTokens,
    limitPath: (key) => limitFields[key],
    samplingPath: (_, name) => name,
    toolChoice: "tool_choice",
    schema: "response_format",
    paths: new Map()
  },
  bindsEverySchema: false,
  limits: chatLimits,
  repairs: repairsOf(chatLimits),
  shows: "all",
  leavesZeroOut: false,
  keptReasoning: () => undefined,
  wantsThinking: true,
  elsewhere: () => undefined,
  declaredElsewhere: ({ tools }) => tools,
  callBounds: noBounds("openai"),
  mostChoices
}
