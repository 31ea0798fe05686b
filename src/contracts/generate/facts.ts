/** Facts of the content-generation contract (https://ai.google.dev/api/generate-content). */
import type { FinishReason } from "../../domain/ReplyEvent.ts"
import type { ContractFacts, ShownFields } from "../Contract.ts"
import { noBounds, shownInMessage, shownLogprobs, usualCaching } from "../shared/facts.ts"
import { type Limits, wordLimit } from "../shared/limits.ts"
import { repairsOf } from "../shared/validHistory.ts"
import { inCommonWords } from "./inCommonWords.ts"

const name = "generate"

const ofOtherKinds: ShownFields = { audio_tokens: true, image_tokens: true, video_tokens: true, text_tokens: true }

/** Source: the vendor's reference and the messages of its errors. */
export const generateLimits: Limits = {
  contract: name,
  callIds: wordLimit(undefined, ""),
  toolNames: wordLimit(64, "a-zA-Z0-9_.:-", "a-zA-Z_"),
  stopSequences: 5,
  texts: 100,
  pictures: [],
  exclusive: [],
  needsProperties: false,
  history: { joinsTurns: true, begins: "without a call", uniqueIds: "in a turn", refusedTexts: "empty" }
}

/** Why a reply ended. */
export const finishReasons = {
  stop: "STOP",
  stop_sequence: "STOP",
  tool_calls: "STOP",
  length: "MAX_TOKENS",
  content_filter: "SAFETY"
} as const satisfies Record<FinishReason, string>

export const generateFacts: ContractFacts = {
  vendor: "generate",
  caching: { least: 2_048, lifetime: usualCaching.lifetime, markedLifetime: usualCaching.lifetime },
  finishNames: finishReasons,
  failureName: undefined,
  words: {
    turns: "contents",
    outputLimit: "generationConfig.maxOutputTokens",
    limitPath: () => "generationConfig.maxOutputTokens",
    samplingPath: (key) => `generationConfig.${key}`,
    toolChoice: "toolConfig",
    schema: "generationConfig.responseJsonSchema",
    paths: new Map([
      ["logprobs", "generationConfig.responseLogprobs"],
      ["top_logprobs", "generationConfig.logprobs"]
    ])
  },
  bindsEverySchema: true,
  limits: generateLimits,
  repairs: repairsOf(generateLimits),
  shows: {
    choice: shownLogprobs,
    message: { ...shownInMessage, audio: { transcript: true, data: true } },
    usage: { prompt_tokens_details: ofOtherKinds, completion_tokens_details: ofOtherKinds }
  },
  leavesZeroOut: true,
  keptReasoning: () => undefined,
  wantsThinking: false,
  elsewhere: inCommonWords,
  declaredElsewhere: ({ tools }) => tools,
  callBounds: noBounds(name),
  mostChoices: 1
}
