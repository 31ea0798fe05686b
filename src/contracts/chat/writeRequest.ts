/**
 * From the canonical conversation to the body of a chat request to an OpenAI-compatible server.
 */
import {
  type Conversation,
  type Sampling,
  type SamplingNames,
  type StructuredOutput,
  type ToolChoice,
  toolChoiceWords,
  type ToolDeclaration,
  toolsEnabled,
  type VendorTool
} from "../../domain/Conversation.ts"
import type { Json } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import { wantsSignatures } from "../../domain/sealed.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { mergeFields } from "../../domain/VendorFields.ts"
import { allHistory, type HistoryOptions, type JsonObject, messagesOf, type ToolMode } from "../shared/chatMessages.ts"
import { addThinking } from "../shared/chatThinking.ts"
import { hasSentFields, type Sends, withVendorFieldsOf } from "../shared/chatVendorFields.ts"
import type { ServerFields } from "../shared/Family.ts"
import { type FieldPolicy, passes, passesUnwritten } from "../shared/fieldPolicy.ts"
import type { ThinkingWords } from "../shared/serverThinking.ts"
import { validHistory, withAcceptedTools } from "../shared/validHistory.ts"
import { chatLimits, promptLimits } from "./facts.ts"

const toolChoice = (choice: ToolChoice): Json =>
  choice._tag === "Function" ? { type: "function", function: { name: choice.name } } : toolChoiceWords[choice._tag]

const nativeTool = (tool: ToolDeclaration, sends: Sends): Json => {
  const { description, name, parameters, strict } = tool
  const declared = {
    type: "function",
    function: {
      name,
      ...(description === undefined ? {} : { description }),
      parameters: parameters ?? { type: "object", properties: {} },
      ...(strict === undefined ? {} : { strict })
    }
  }
  return withVendorFieldsOf(tool, declared, sends)
}

/** The tools that the server runs, as far as they are sent. */
const serverTools = ({ toolChoice: choice, vendorTools = [] }: Conversation, sends: Sends): ReadonlyArray<VendorTool> =>
  choice._tag === "None" ? [] : vendorTools.filter((tool) => hasSentFields(tool, sends))

const nativeTools = (
  { parallelToolCalls, toolChoice: choice, tools }: Conversation,
  served: ReadonlyArray<VendorTool>,
  sends: Sends
): JsonObject => ({
  tools: served.reduce<ReadonlyArray<Json>>(
    (list, { index, vendorFields }) => list.toSpliced(index, 0, vendorFields.fields),
    tools.map((tool) => nativeTool(tool, sends))
  ),
  ...(choice._tag === "Auto" ? {} : { tool_choice: toolChoice(choice) }),
  ...(parallelToolCalls ? {} : { parallel_tool_calls: false })
})

const responseFormat = (output: StructuredOutput): Json =>
  output._tag === "JsonObject"
    ? { type: "json_object" }
    : {
      type: "json_schema",
      json_schema: {
        name: output.name ?? "reply",
        schema: output.schema,
        ...(output.description === undefined ? {} : { description: output.description }),
        ...(output.strict === undefined ? {} : { strict: output.strict })
      }
    }

const fieldNames = {
  temperature: "temperature",
  topP: "top_p",
  topK: "top_k",
  maxTokens: "max_tokens",
  maxCompletionTokens: "max_completion_tokens",
  seed: "seed",
  presencePenalty: "presence_penalty",
  frequencyPenalty: "frequency_penalty",
  logitBias: "logit_bias"
} as const satisfies SamplingNames

const samplingKeys = Object.keys(fieldNames) as ReadonlyArray<keyof Sampling>

/** Adds only the caller's fields, because servers refuse unknown ones. */
const addSampling = (request: Record<string, Json>, given: Sampling): void => {
  for (const key of samplingKeys) {
    const value = given[key]
    if (value !== undefined) request[fieldNames[key]] = value
  }
}

/** Tells whether a conversation says another thing than its server field of this name, which the server then does not get. */
const overrides = ({ output, sampling, serverFields, stop }: Conversation, name: string): boolean => {
  const key = samplingKeys.find((key) => fieldNames[key] === name)
  if (key !== undefined) return sampling[key] !== undefined && sampling[key] !== serverFields?.[name]
  return name === "stop" ? stop.length > 0 : name === "response_format" && output !== undefined
}

/** Tells whether a field that the gateway does not model is sent. */
export const passesField = (policy: FieldPolicy): (name: string, conversation?: Conversation) => boolean => {
  const isPassed = passesUnwritten(policy)
  return (name, conversation) => isPassed(name) && (conversation === undefined || !overrides(conversation, name))
}

/** Tells whether vendor fields are sent, by the path of their element. Messages that declare tools as text have no vendor fields. */
export const sendsVendorFields = (policy: FieldPolicy, mode: ToolMode): (name: string, path: string) => boolean => {
  const isPassed = passes(policy)
  return mode === "native" ? isPassed : (name, path) => path === "" && isPassed(name)
}

/** The fields that are sent, as a new object. */
export const passedFields = (
  fields: ServerFields,
  isPassed: (name: string) => boolean
): Record<string, Json> => Object.fromEntries(Object.entries(fields).filter(([name]) => isPassed(name)))

/** How a server is asked. */
export interface ServerFacts extends HistoryOptions {
  readonly tools: ToolMode
  /** The words in which it reads whether and how much to think. */
  readonly words: ThinkingWords | undefined
  /** What becomes of fields that the gateway does not model. */
  readonly policy: FieldPolicy
}

const plainServer: ServerFacts = { ...allHistory, tools: "native", words: undefined, policy: "pass" }

/** The request with the vendor's own fields of those of its objects that the gateway models. */
const withOptions = (request: JsonObject, { vendorFields }: Conversation, sends: Sends): JsonObject => {
  if (vendorFields?.vendor !== "openai") return request
  const inner = Object.entries(vendorFields.fields).filter(([name]) => sends(name) && isFields(request[name]))
  return mergeFields(request, Object.fromEntries(inner))
}

/** A sequence within the arguments of a call as text would end the call, so the gateway applies the sequences itself then. */
export const sendsStop = (mode: ToolMode, conversation: Conversation): boolean =>
  mode === "native" || !toolsEnabled(conversation)

/** The stop sequences that the server gets. */
export const sentStop = (mode: ToolMode, conversation: Conversation): ReadonlyArray<string> =>
  sendsStop(mode, conversation) ? conversation.stop.slice(0, chatLimits.stopSequences) : []

/**
 * The request of a conversation, with the server's name of the model. A streamed reply has usage at its end. The caller's fields for
 * the server stand below the conversation's.
 */
export function* chatRequest(
  model: string,
  said: Conversation,
  server: ServerFacts = plainServer,
  isWhole: boolean = false
): Cooperative<string> {
  const { policy, tools: mode } = server
  const conversation = mode === "native"
    ? withAcceptedTools(yield* validHistory(said, chatLimits), chatLimits)
    : yield* validHistory(said, promptLimits)
  const isPassed = passesField(policy)
  const sends = passes(policy)
  const sent = { sends: mode === "native" ? sends : () => false, wantsSignatures: wantsSignatures(model) }
  const enabled = toolsEnabled(conversation)
  const stop = sentStop(mode, conversation)
  const { serverFields } = conversation
  const request: Record<string, Json> = {
    ...(serverFields === undefined ? {} : passedFields(serverFields, isPassed)),
    model,
    messages: yield* messagesOf(conversation, mode, sent, server),
    ...(isWhole ? { stream: false } : { stream: true, stream_options: { include_usage: true } })
  }
  const served = mode === "native" ? serverTools(conversation, sends) : []
  if ((enabled && mode === "native") || served.length > 0) {
    Object.assign(request, nativeTools(conversation, served, sends))
  }
  addSampling(request, conversation.sampling)
  addThinking(request, conversation, server.words)
  if (stop.length > 0) request["stop"] = stop
  if (conversation.choices > 1) request["n"] = conversation.choices
  if (conversation.output !== undefined) request["response_format"] = responseFormat(conversation.output)
  return JSON.stringify(withOptions(request, conversation, sends))
}
