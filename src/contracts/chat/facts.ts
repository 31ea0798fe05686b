/** Facts of chat completions (https://platform.openai.com/docs/api-reference/chat). */
import type { ContractFacts } from "../Contract.ts"
import { noBounds, usualCaching } from "../shared/facts.ts"

const limits = { maxTokens: "max_tokens", maxCompletionTokens: "max_completion_tokens" } as const

export const chatFacts: ContractFacts = {
  name: "openai",
  vendor: "openai",
  caching: usualCaching,
  words: {
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
