/**
 * From the canonical conversation to the body of a request to a messages server.
 */
import type {
  Conversation,
  Sampling,
  SamplingNames,
  StructuredOutput,
  ToolChoice,
  ToolDeclaration
} from "../../domain/Conversation.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import type { ThinkingWords } from "../shared/serverThinking.ts"
import { validHistory, withAcceptedTools } from "../shared/validHistory.ts"
import { asSent, type Block, isBlock, sentFields } from "./blocks.ts"
import { messagesLimits } from "./facts.ts"
import { marked, type MarkOptions, withinMarks } from "./marks.ts"
import { endsInUnsealedCalls, isInVendorsFormat, messagesOf, unsignedLoop, withInstruction } from "./turns.ts"
import { leastBudget, sayThinking } from "./writeThinking.ts"

/** The limit of output, in tokens, that is sent if the caller and the model's entry have none: the vendor requires one. */
export const defaultMaxTokens = 8_192

/** How a model is asked. */
export interface ModelOptions {
  readonly thinking: ThinkingWords | undefined
  /** The limit of output if the caller has none. */
  readonly maxTokens: number | undefined
  /** How prompts are marked; without it none is. */
  readonly marks: MarkOptions | undefined
  /** Tells which of the caller's own fields of the request are sent. Default: all. */
  readonly sends: ((name: string) => boolean) | undefined
}

const plainOptions: ModelOptions = { thinking: undefined, maxTokens: undefined, marks: undefined, sends: undefined }

const sent = (fields: JsonFields, sends: ((name: string) => boolean) | undefined): JsonFields =>
  sends === undefined || Object.keys(fields).every(sends)
    ? fields
    : Object.fromEntries(Object.entries(fields).filter(([name]) => sends(name)))

/** The caller's own fields without a schema, for a reply that is asked for in another way. */
const withoutSchema = ({ output_config, output_format: _, ...fields }: JsonFields): JsonFields => {
  if (!isFields(output_config)) return output_config === undefined ? fields : { ...fields, output_config }
  const { format: __, ...rest } = output_config
  return Object.keys(rest).length === 0 ? fields : { ...fields, output_config: rest }
}

const emptySchema = { type: "object", properties: {} }

const toolBlock = ({ description, name, vendorFields, parameters, strict }: ToolDeclaration): Block | undefined =>
  asSent({
    name,
    ...(description === undefined ? {} : { description }),
    input_schema: parameters === undefined
      ? emptySchema
      : Object.hasOwn(parameters, "type")
      ? parameters
      : { type: "object", ...parameters },
    ...(strict === undefined ? {} : { strict })
  }, vendorFields)

/** The tools, with those that the vendor runs at their places. */
const toolBlocks = ({ tools, vendorTools = [] }: Conversation): Array<Block> => {
  const blocks = tools.map(toolBlock).filter(isBlock)
  for (const { index, vendorFields } of vendorTools) {
    const own = sentFields(vendorFields)
    if (own !== undefined) blocks.splice(index, 0, own)
  }
  return blocks
}

const choices = { Auto: "auto", None: "none", Required: "any", Function: "tool" } as const

const toolChoice = (choice: ToolChoice, isParallel: boolean): Block => ({
  type: choices[choice._tag],
  ...(choice._tag === "Function" ? { name: choice.name } : {}),
  ...(isParallel || choice._tag === "None" ? {} : { disable_parallel_tool_use: true })
})

const isForced = ({ _tag }: ToolChoice): boolean => _tag === "Required" || _tag === "Function"

/**
 * False for a forced tool, for a limit of output that leaves no room, and in a tool loop that began without thinking: the vendor
 * rejects thinking with each.
 */
export const mayThink = (conversation: Conversation): boolean => {
  const { sampling: { maxCompletionTokens, maxTokens }, toolChoice: choice, tools } = conversation
  const limit = maxCompletionTokens ?? maxTokens
  return !(tools.length > 0 && isForced(choice)) && (limit === undefined || limit > leastBudget) &&
    !endsInUnsealedCalls(conversation)
}

const jsonOnly = "Reply with one JSON object and nothing else."

const format = (output: StructuredOutput): Block | undefined =>
  output._tag === "JsonSchema" ? { type: "json_schema", schema: output.schema } : undefined

/** The vendor's temperatures end at 1, others' at 2. */
const warmest = 1
/** The least `top_p` that the vendor accepts while its model thinks. */
const leastTopP = 0.95

/** The fields of sampling parameters. The limit of output, which the vendor requires, is written by itself. */
const samplingNames: SamplingNames = {
  temperature: "temperature",
  topP: "top_p",
  topK: "top_k",
  maxTokens: "max_tokens",
  maxCompletionTokens: "max_tokens",
  seed: undefined,
  presencePenalty: undefined,
  frequencyPenalty: undefined,
  logitBias: undefined
}

const samplingKeys = Object.keys(samplingNames) as ReadonlyArray<keyof Sampling>

/** Parameters that the vendor does not have. */
const unknownSampling = samplingKeys.filter((name) => samplingNames[name] === undefined)

/** Parameters that the vendor rejects while its model thinks. */
const rejectedThinking = ({ topP = 1 }: Sampling): ReadonlyArray<keyof Sampling> => [
  "temperature",
  "topK",
  ...(topP < leastTopP ? ["topP" as const] : [])
]

/** Parameters that the vendor's newer models refuse beside another one. */
const excluded = (sampling: Sampling): ReadonlyArray<keyof Sampling> =>
  messagesLimits.exclusive.flatMap(([sent, other]) => sampling[sent] === undefined ? [] : [other])

/** Parameters that the vendor does not have, those that it refuses beside others, and those that it rejects while its model thinks. */
export const unsampled = (
  conversation: Conversation,
  words: ThinkingWords | undefined
): ReadonlyArray<keyof Sampling> => {
  const { sampling, thinking } = conversation
  const isCallers = isInVendorsFormat(conversation)
  const unsent = isCallers ? unknownSampling : [...unknownSampling, ...excluded(sampling)]
  const thinks = !isCallers && thinking !== undefined && thinking.mode !== "off" &&
    words !== "effort" && words !== "none" && mayThink(conversation)
  return thinks ? [...unsent, ...rejectedThinking(sampling)] : unsent
}

/** The parameters beside the limit of output, within the vendor's range unless its caller has written them. */
const samplingFields = (sampling: Sampling, isCallers: boolean, thinks: boolean): Record<string, Json> => {
  const rejected = isCallers ? [] : thinks ? rejectedThinking(sampling) : excluded(sampling)
  const fields: Record<string, Json> = {}
  for (const key of samplingKeys) {
    const name = samplingNames[key]
    const value = sampling[key]
    if (name === undefined || name === "max_tokens" || value === undefined || rejected.includes(key)) continue
    fields[name] = key === "temperature" && !isCallers ? Math.min(warmest, Number(value)) : value
  }
  return fields
}

/** The conversation in the vendor's format, as far as both a reply and a count of tokens depend on it. */
interface Said {
  readonly fields: Record<string, Json>
  readonly maxTokens: number
  readonly thinks: boolean
}

function* say(
  model: string,
  given: Conversation,
  options: ModelOptions
): Cooperative<Said> {
  const conversation = withAcceptedTools(yield* validHistory(given, messagesLimits), messagesLimits)
  const { vendorFields, output, parallelToolCalls, sampling, toolChoice: choice } = conversation
  const callers = sent(sentFields(vendorFields) ?? {}, options.sends)
  const said = output === undefined ? withoutSchema(callers) : callers
  const own = unsignedLoop(conversation) === -1
    ? said
    : Object.fromEntries(Object.entries(said).filter(([name]) => name !== "thinking"))
  const isCallers = isInVendorsFormat(conversation)
  const { messages, system } = yield* messagesOf(conversation)
  const tools = toolBlocks(conversation)
  const limit = sampling.maxCompletionTokens ?? sampling.maxTokens
  const isOff = conversation.thinking?.mode === "off"
  const asked = isOff || mayThink(conversation) ? conversation.thinking : undefined
  const { effort, maxTokens, thinking } = isCallers
    ? { effort: undefined, thinking: undefined, maxTokens: limit ?? options.maxTokens ?? defaultMaxTokens }
    : sayThinking(
      asked,
      options.thinking,
      limit,
      options.maxTokens ?? defaultMaxTokens
    )
  const fields: Record<string, Json> = { ...own, model, messages }
  const prompt = output?._tag === "JsonObject" ? withInstruction(system, jsonOnly) : system
  if (prompt !== undefined) fields["system"] = prompt
  if (tools.length > 0) {
    fields["tools"] = tools
    if (choice._tag !== "Auto" || !parallelToolCalls) fields["tool_choice"] ??= toolChoice(choice, parallelToolCalls)
    if (choice._tag === "Function" && isFields(own["tool_choice"])) {
      fields["tool_choice"] = { ...own["tool_choice"], name: choice.name }
    }
  }
  if (thinking !== undefined) fields["thinking"] ??= thinking
  const schema = output === undefined || own["output_format"] !== undefined ? undefined : format(output)
  if (effort !== undefined || schema !== undefined) {
    fields["output_config"] ??= {
      ...(effort === undefined ? {} : { effort }),
      ...(schema === undefined ? {} : { format: schema })
    }
  }
  return { fields, maxTokens, thinks: thinking !== undefined && effort === undefined && isThinking(thinking) }
}

const isThinking = (thinking: Json): boolean =>
  typeof thinking === "object" && thinking !== null && !Array.isArray(thinking) &&
  Reflect.get(thinking, "type") !== "disabled"

/** The request of a conversation, with the server's name of the model. */
export function* messagesRequest(
  model: string,
  conversation: Conversation,
  options: ModelOptions = plainOptions,
  isWhole = false
): Cooperative<string> {
  const { fields: unmarked, maxTokens, thinks } = yield* say(model, conversation, options)
  const fields = yield* marked(
    isInVendorsFormat(conversation) ? unmarked : withinMarks(unmarked),
    conversation,
    options.marks
  )
  const isCallers = isInVendorsFormat(conversation)
  // The vendor rejects blank sequences, which the gateway finds by itself.
  const stop = isCallers ? conversation.stop : conversation.stop.filter((sequence) => sequence.trim() !== "")
  return JSON.stringify({
    ...fields,
    max_tokens: maxTokens,
    stream: !isWhole,
    ...samplingFields(conversation.sampling, isCallers, thinks),
    ...(stop.length === 0 ? {} : { stop_sequences: stop })
  })
}

/** Fields that a count of tokens does not accept. */
const notCounted: ReadonlySet<string> = new Set([
  "max_tokens",
  "metadata",
  "service_tier",
  "container",
  "inference_geo",
  "diagnostics",
  "fallbacks",
  "fallback_credit_token",
  "thread"
])

/** The request for the count of a conversation's tokens. */
export function* countRequest(
  model: string,
  conversation: Conversation,
  options: ModelOptions = plainOptions
): Cooperative<string> {
  const { fields } = yield* say(model, conversation, options)
  return JSON.stringify(Object.fromEntries(Object.entries(fields).filter(([name]) => !notCounted.has(name))))
}
