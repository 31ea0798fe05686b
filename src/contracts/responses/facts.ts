/** Facts of the Responses contract (https://platform.openai.com/docs/api-reference/responses). */
import type { Conversation } from "../../domain/Conversation.ts"
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import { isWholeFor } from "../../domain/VendorFields.ts"
import type { CallBounds, ContractFacts } from "../Contract.ts"
import { isCount, noBounds, shownInMessage, shownLogprobs, unboundedCalls, usualCaching } from "../shared/facts.ts"
import { type Limits, wordLimit } from "../shared/limits.ts"
import { repairsOf } from "../shared/validHistory.ts"
import { itemRepairs } from "./validItems.ts"

const name = "responses"

/** Source: the vendor's reference and the messages of its errors. The contract has no stop sequences. */
export const responsesLimits: Limits = {
  contract: name,
  callIds: wordLimit(64, ""),
  toolNames: wordLimit(64, "a-zA-Z0-9_-"),
  stopSequences: 0,
  texts: 0,
  pictures: [],
  exclusive: [],
  needsProperties: true,
  history: { joinsTurns: true, begins: "anyhow", uniqueIds: "in all turns", refusedTexts: "none" }
}

const repairs = repairsOf(responsesLimits)

/** The types of tools that the client runs; some in one form alone. */
const clientTypes: ReadonlySet<unknown> = new Set([
  "function",
  "custom",
  "namespace",
  "local_shell",
  "apply_patch",
  "computer",
  "computer_use_preview"
])

const isClients = ({ environment, execution, type }: JsonRecord): boolean =>
  clientTypes.has(type) || (type === "tool_search" && execution === "client") ||
  (type === "shell" && (!isRecord(environment) || (environment["type"] ?? "local") === "local"))

/** The name by which bills count the calls of a tool. */
const billedName = ({ type }: JsonRecord): string =>
  typeof type !== "string" ? "" : type.startsWith("web_search") ? "web_search" : type

const callBounds = (conversation: Conversation): CallBounds => {
  if (!isWholeFor(conversation, name)) return noBounds(name)(conversation)
  const { max_tool_calls: calls, tools } = conversation.vendorFields?.fields ?? {}
  const names = (Array.isArray(tools) ? tools : []).filter(isRecord).filter((tool) => !isClients(tool)).map(billedName)
  if (names.length === 0) return []
  return isCount(calls) ? [{ names, calls }] : unboundedCalls("max_tool_calls", "set it")
}

export const responsesFacts: ContractFacts = {
  vendor: "openai",
  caching: usualCaching,
  // The status of the response, or why it is incomplete.
  finishNames: {
    stop: "completed",
    stop_sequence: "completed",
    tool_calls: "completed",
    length: "max_output_tokens",
    content_filter: "content_filter"
  },
  failureName: "failed",
  words: {
    turns: "input",
    outputLimit: "max_output_tokens",
    limitPath: () => "max_output_tokens",
    samplingPath: (_, name) => name,
    toolChoice: "tool_choice",
    schema: "text.format",
    paths: new Map([["verbosity", "text.verbosity"], ["logprobs", "include"]])
  },
  bindsEverySchema: false,
  limits: responsesLimits,
  repairs: (conversation, isWhole) => isWhole ? itemRepairs(conversation, responsesLimits) : repairs(conversation),
  shows: { chunk: { service_tier: true }, choice: shownLogprobs, message: shownInMessage },
  leavesZeroOut: false,
  keptReasoning: (item) => ({ _tag: "Item", item }),
  wantsThinking: false,
  elsewhere: () => undefined,
  declaredElsewhere: ({ tools }) => tools,
  callBounds,
  mostChoices: 1
}
