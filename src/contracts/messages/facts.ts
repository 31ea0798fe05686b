/** Facts of the messages contract (https://docs.anthropic.com/en/api/messages). */
import type { MostUsed } from "../../domain/bill.ts"
import type { Conversation } from "../../domain/Conversation.ts"
import type { FinishReason } from "../../domain/ReplyEvent.ts"
import type { CallBounds, ContractFacts } from "../Contract.ts"
import { isCount, shownInMessage, unboundedCalls, usualCaching } from "../shared/facts.ts"
import { type Limits, wordLimit } from "../shared/limits.ts"
import { type Repairs, repairsOf } from "../shared/validHistory.ts"
import { declaredElsewhere } from "./deferredTools.ts"
import { unsignedLoop } from "./turns.ts"

const name = "messages"

/** Source: the vendor's reference and the messages of its errors. */
export const messagesLimits: Limits = {
  contract: name,
  callIds: wordLimit(64, "a-zA-Z0-9_-"),
  toolNames: wordLimit(128, "a-zA-Z0-9_-"),
  stopSequences: undefined,
  texts: 0,
  pictures: ["image/jpeg", "image/png", "image/gif", "image/webp"],
  exclusive: [["temperature", "topP"]],
  needsProperties: false,
  history: { joinsTurns: true, begins: "with the user", uniqueIds: "in all turns", refusedTexts: "blank" }
}

const repairs = (conversation: Conversation): Repairs => {
  const repairs = repairsOf(messagesLimits)(conversation)
  const turn = unsignedLoop(conversation)
  return turn === -1
    ? repairs
    : { ...repairs, found: [...repairs.found, { turn, what: "thinking without a signature" }] }
}

const callBounds = ({ vendorTools = [] }: Conversation): CallBounds => {
  const found: Array<NonNullable<MostUsed["tools"]>[number]> = []
  for (const { index, vendorFields: { fields, vendor } } of vendorTools) {
    if (vendor !== name || fields["type"] === "custom") continue
    const calls = fields["max_uses"]
    if (!isCount(calls)) return unboundedCalls(`tools[${index}].max_uses`, "set it")
    found.push({ names: [String(fields["name"])], calls })
  }
  return found
}

/** Why a reply ended. */
export const stopReasons = {
  stop: "end_turn",
  stop_sequence: "stop_sequence",
  tool_calls: "tool_use",
  length: "max_tokens",
  content_filter: "refusal"
} as const satisfies Record<FinishReason, string>

export const messagesFacts: ContractFacts = {
  vendor: "messages",
  caching: { ...usualCaching, markedLifetime: 300 },
  finishNames: stopReasons,
  failureName: undefined,
  words: {
    turns: "messages",
    outputLimit: "max_tokens",
    limitPath: () => "max_tokens",
    samplingPath: (_, name) => name,
    toolChoice: "tool_choice",
    schema: "output_config.format",
    paths: new Map()
  },
  bindsEverySchema: true,
  limits: messagesLimits,
  repairs,
  shows: { chunk: { service_tier: true }, message: shownInMessage },
  leavesZeroOut: false,
  keptReasoning: (block) => ({ _tag: "Details", fields: { thinking_blocks: [block] } }),
  wantsThinking: false,
  elsewhere: () => undefined,
  declaredElsewhere,
  callBounds,
  mostChoices: 1
}
