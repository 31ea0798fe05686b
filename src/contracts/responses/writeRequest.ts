/**
 * From the canonical conversation to the body of a request to a Responses server. A request of the same contract is sent as its caller wrote
 * it; only the model's name and `stream` are the gateway's.
 */
import {
  type Conversation,
  type Sampling,
  type SamplingNames,
  type StructuredOutput,
  type ToolChoice,
  toolChoiceWords,
  type ToolDeclaration,
  toolsEnabled
} from "../../domain/Conversation.ts"
import { isRecord, type Json, type JsonFields } from "../../domain/json.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { allHistory, messagesOf, type ToolMode } from "../shared/chatMessages.ts"
import { effortOf } from "../shared/chatThinking.ts"
import { type FieldPolicy, passes, passesUnwritten } from "../shared/fieldPolicy.ts"
import type { ThinkingWords } from "../shared/serverThinking.ts"
import { validHistory, withAcceptedTools } from "../shared/validHistory.ts"
import { responsesLimits } from "./facts.ts"
import { includedLogprobs, isOfContract } from "./family.ts"
import { type HistoryOptions, type Input, inputOf } from "./inputItems.ts"
import { itemsOfMessages } from "./promptItems.ts"
import { ownItems, validItems } from "./validItems.ts"

/** The least limit of output that the vendor accepts, in tokens. */
export const leastOutputTokens = 16

/** Fields of chat completions that the contract does not have, or has in other words. */
const chatOnly: ReadonlySet<string> = new Set([
  "logprobs",
  "verbosity",
  "modalities",
  "audio",
  "prediction",
  "web_search_options",
  "reasoning_effort"
])

/** Fields of chat completions that the contract has in other words. */
const reworded: ReadonlySet<string> = new Set(["logprobs", "verbosity", "reasoning_effort"])

/** How a model is asked. */
export interface ModelOptions extends HistoryOptions {
  /** The server gets the caller's own request, with all kinds of tools and items. */
  readonly speaks: boolean
  readonly tools: ToolMode
  readonly words: ThinkingWords | undefined
  /** The server is asked for its thinking in a form that it reads again. */
  readonly seals: boolean
  /** Whether the model's thinking is shown; `auto`: if the caller asks for it. */
  readonly shows: boolean | "auto"
  readonly policy: FieldPolicy
}

const plainServer: ModelOptions = {
  history: undefined,
  readsThinking: false,
  speaks: false,
  tools: "native",
  words: undefined,
  seals: false,
  shows: false,
  policy: "pass"
}

/** The caller's own request, if it speaks the contract. */
export const ownRequest = ({ vendorFields }: Conversation): JsonFields | undefined =>
  vendorFields?.vendor === "responses" && vendorFields.wholeElement === true ? vendorFields.fields : undefined

/** Tells whether a field of the request that the gateway does not model is sent. */
export const sendsField = (policy: FieldPolicy) => {
  const isPassed = passes(policy)
  const isUnwritten = passesUnwritten(policy)
  return (name: string, conversation?: Conversation): boolean =>
    conversation !== undefined && ownRequest(conversation) !== undefined
      ? isOfContract(name) || isPassed(name)
      : reworded.has(name) || (!chatOnly.has(name) && isUnwritten(name))
}

/** The fields of sampling parameters. The limit of output, which is at least the vendor's, is written by itself. */
export const samplingNames: SamplingNames = {
  temperature: "temperature",
  topP: "top_p",
  topK: undefined,
  maxTokens: undefined,
  maxCompletionTokens: undefined,
  seed: undefined,
  presencePenalty: undefined,
  frequencyPenalty: undefined,
  logitBias: undefined
}

/** The fields by which callers of the contract write parameters, also those that it does not have. */
const ownNames: SamplingNames = {
  temperature: "temperature",
  topP: "top_p",
  topK: "top_k",
  maxTokens: "max_output_tokens",
  maxCompletionTokens: "max_output_tokens",
  seed: "seed",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  logitBias: "logit_bias"
}

/**
 * Tells whether a parameter is sent: those of the contract, and of a caller's own request also those whose fields the policy passes.
 * `isOwn`: the server gets the request as its caller wrote it.
 */
export const sendsSampling = (policy: FieldPolicy) => {
  const isPassed = passes(policy)
  return (name: keyof Sampling, isOwn: boolean): boolean => {
    const field = isOwn ? ownNames[name] : samplingNames[name]
    return field !== undefined && (!isOwn || isOfContract(field) || isPassed(field))
  }
}

/** Tells whether a vendor field is sent, by the path of its element. */
export const sendsVendorField = (policy: FieldPolicy) => {
  const isPassed = passes(policy)
  return (name: string, path: string): boolean => path !== "" || isOfContract(name) || isPassed(name)
}

const samplingFields = (sampling: Sampling): JsonFields =>
  Object.fromEntries(
    (Object.keys(samplingNames) as ReadonlyArray<keyof Sampling>).flatMap((key) => {
      const name = samplingNames[key]
      const value = sampling[key]
      return name === undefined || value === undefined ? [] : [[name, value] as const]
    })
  )

const toolChoice = (choice: ToolChoice): Json =>
  choice._tag === "Function" ? { type: "function", name: choice.name } : toolChoiceWords[choice._tag]

/** The vendor takes a function without `strict` for a strict one, and refuses most schemas then. */
const toolOf = ({ description, name, parameters, strict }: ToolDeclaration): Json => ({
  type: "function",
  name,
  ...(description === undefined ? {} : { description }),
  parameters: parameters ?? { type: "object", properties: {} },
  strict: strict ?? false
})

const formatOf = (output: StructuredOutput): Json =>
  output._tag === "JsonObject"
    ? { type: "json_object" }
    : {
      type: "json_schema",
      name: output.name ?? "reply",
      schema: output.schema,
      ...(output.description === undefined ? {} : { description: output.description }),
      strict: output.strict ?? false
    }

const thinkingOf = (
  { thinking }: Conversation,
  { shows, words = "effort" }: ModelOptions
): JsonFields | undefined => {
  const effort = thinking === undefined || words === "none" ? undefined : effortOf(thinking)
  const isShown = shows === true || (shows === "auto" && effort !== undefined)
  if (effort === "none") return { effort }
  return effort === undefined && !isShown
    ? undefined
    : { ...(effort === undefined ? {} : { effort }), ...(isShown ? { summary: "auto" } : {}) }
}

const textFields = ({ output, serverFields = {} }: Conversation): JsonFields | undefined => {
  const { verbosity } = serverFields
  return output === undefined && verbosity === undefined ? undefined : {
    ...(output === undefined ? {} : { format: formatOf(output) }),
    ...(verbosity === undefined ? {} : { verbosity })
  }
}

/** Tools that a prompt declares are not declared in a field, and a call in it needs no such item. */
function* inputFor(conversation: Conversation, options: ModelOptions): Cooperative<Input> {
  return options.tools === "prompt"
    ? itemsOfMessages(
      yield* messagesOf(conversation, "prompt", { sends: () => false, wantsSignatures: false }, allHistory)
    )
    : yield* inputOf(conversation, options)
}

/** The body for the conversation of another contract. */
function* translated(said: Conversation, options: ModelOptions): Cooperative<JsonFields> {
  const valid = yield* validHistory(said, responsesLimits)
  const conversation = options.tools === "prompt" ? valid : withAcceptedTools(valid, responsesLimits)
  const { parallelToolCalls, sampling, serverFields = {}, toolChoice: choice, tools } = conversation
  const sends = sendsField(options.policy)
  const own = Object.fromEntries(
    Object.entries(serverFields).filter(([name]) => !chatOnly.has(name) && sends(name, conversation))
  )
  const { instructions, items } = yield* inputFor(conversation, options)
  const hasTools = options.tools === "native" && toolsEnabled(conversation)
  const limit = sampling.maxCompletionTokens ?? sampling.maxTokens
  const reasoning = thinkingOf(conversation, options)
  const text = textFields(conversation)
  const included = options.seals ? ["reasoning.encrypted_content"] : []
  if (serverFields["logprobs"] === true) included.push(includedLogprobs)
  return {
    store: false,
    ...own,
    input: items,
    ...(instructions === undefined ? {} : { instructions }),
    ...(hasTools ? { tools: tools.map(toolOf) } : {}),
    ...(hasTools && choice._tag !== "Auto" ? { tool_choice: toolChoice(choice) } : {}),
    ...(hasTools && !parallelToolCalls ? { parallel_tool_calls: false } : {}),
    ...samplingFields(sampling),
    ...(limit === undefined ? {} : { max_output_tokens: Math.max(leastOutputTokens, limit) }),
    ...(reasoning === undefined ? {} : { reasoning: isRecord(own["reasoning"]) ? own["reasoning"] : reasoning }),
    ...(text === undefined ? {} : { text }),
    ...(included.length === 0 ? {} : { include: included })
  }
}

/** The caller's own body, without fields that the policy leaves out. */
const ownBody = (own: JsonFields, conversation: Conversation, policy: FieldPolicy): JsonFields => {
  const sends = sendsField(policy)
  const fields = policy === "pass"
    ? own
    : Object.fromEntries(Object.entries(own).filter(([name]) => sends(name, conversation)))
  const items = ownItems({ fields })
  return items === undefined ? fields : { ...fields, input: validItems(items, responsesLimits).items }
}

function* fieldsOf(conversation: Conversation, options: ModelOptions): Cooperative<JsonFields> {
  const own = options.speaks ? ownRequest(conversation) : undefined
  return own === undefined ? yield* translated(conversation, options) : ownBody(own, conversation, options.policy)
}

/** The request of a conversation, with the server's name of the model. */
export function* responsesRequest(
  model: string,
  conversation: Conversation,
  options: ModelOptions = plainServer,
  isWhole = false
): Cooperative<string> {
  return JSON.stringify({ ...yield* fieldsOf(conversation, options), model, stream: !isWhole })
}

const isTrigger = (item: Json): boolean => isRecord(item) && item["type"] === "compaction_trigger"

/** The request for a compaction alone, of a caller of the contract. Its endpoint has no streams, and no item that asks for one. */
export function* compactRequest(model: string, conversation: Conversation, options: ModelOptions): Cooperative<string> {
  const { stream: _, ...fields } = (yield* fieldsOf(conversation, options)) as JsonFields & { readonly stream?: Json }
  const input = fields["input"]
  return JSON.stringify({
    ...fields,
    ...(Array.isArray(input) ? { input: input.filter((item: Json) => !isTrigger(item)) } : {}),
    model
  })
}

/** Fields of a request for the count of tokens. */
const counted = [
  "input",
  "instructions",
  "parallel_tool_calls",
  "personality",
  "reasoning",
  "text",
  "tool_choice",
  "tools",
  "truncation"
]

/** The request for the count of a conversation's tokens. */
export function* countRequest(model: string, conversation: Conversation, options: ModelOptions): Cooperative<string> {
  const fields = yield* fieldsOf(conversation, options)
  const sent = counted.flatMap((name) => fields[name] === undefined ? [] : [[name, fields[name]] as const])
  return JSON.stringify({ model, ...Object.fromEntries(sent) })
}
