/** Facts of chat completions (https://platform.openai.com/docs/api-reference/chat). */
import type { FinishReason } from "../../domain/ReplyEvent.ts"
import type { ContractFacts } from "../Contract.ts"
import { noBounds, usualCaching } from "../shared/facts.ts"

const limits = { maxTokens: "max_tokens", maxCompletionTokens: "max_completion_tokens" } as const

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
    outputLimit: limits.maxCompletionTokens,
    limitPath: (key) => limits[key],
    samplingPath: (_, name) => name,
    paths: new Map()
  },
  shows: "all",
  leavesZeroOut: false,
  keptReasoning: () => undefined,
  elsewhere: () => undefined,
  declaredElsewhere: ({ tools }) => tools,
  callBounds: noBounds("openai")
}
