/**
 * From a chat-completions request to the canonical conversation.
 */
import type * as Result from "effect/Result"
import type { Conversation, Part, StructuredOutput, ToolChoice, Turn } from "../../domain/Conversation.ts"
import { Text } from "../../domain/Conversation.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { mapSliced, Slice, type Sliced } from "../../domain/stream/slices.ts"
import { Faults } from "../../http/Faults.ts"
import { type CarriedPart, contentPart } from "../shared/contentParts.ts"
import type { ChatMessage, ChatRequest } from "./Api.ts"

type Request = typeof ChatRequest.Type
type Message = typeof ChatMessage.Type

function* contentParts(
  content: Message["content"],
  field: string,
  faults: Faults,
  slice: Slice
): Sliced<ReadonlyArray<CarriedPart>> {
  if (content === undefined || content === null || content === "") return []
  return typeof content === "string"
    ? [Text(content)]
    : yield* mapSliced(slice, content, (part, i) => contentPart(part, `${field}[${i}]`, faults))
}

const argumentsText = (args: string | object | null | undefined): string =>
  typeof args === "string" ? args : args === null || args === undefined ? "{}" : JSON.stringify(args)

function* assistantParts(
  message: Message,
  field: string,
  faults: Faults,
  slice: Slice
): Sliced<ReadonlyArray<Part>> {
  const said = yield* contentParts(message.content, `${field}.content`, faults, slice)
  const calls = yield* mapSliced(slice, message.tool_calls ?? [], (call): Part => ({
    _tag: "Call",
    id: call.id ?? "",
    name: call.function.name,
    arguments: argumentsText(call.function.arguments)
  }))
  const { function_call } = message
  // Who writes both says the same twice.
  if (function_call?.name && calls.length === 0) {
    const { arguments: args, name } = function_call
    calls.push({ _tag: "Call", id: "", name, arguments: argumentsText(args) })
  }
  const parts: Array<Part> = []
  if (message.reasoning_content) parts.push({ _tag: "Reasoning", text: message.reasoning_content })
  const refusal = message.refusal ? [Text(message.refusal)] : []
  return parts.concat(said, refusal, calls)
}

/** The turn of a message that is one text, as most are. */
const plainTurn = (message: Message): Turn | undefined => {
  const { content, role } = message
  if (typeof content !== "string" || content === "") return undefined
  switch (role) {
    case "system":
    case "developer":
      return { role: "system", parts: [Text(content)] }
    case "user":
      return { role, parts: [Text(content)] }
    case "assistant":
      return message.tool_calls || message.function_call || message.reasoning_content || message.refusal
        ? undefined
        : { role, parts: [Text(content)] }
    default:
      return undefined
  }
}

function* turn(message: Message, field: string, faults: Faults, slice: Slice): Sliced<Turn> {
  switch (message.role) {
    case "system":
    case "developer":
      return { role: "system", parts: yield* contentParts(message.content, `${field}.content`, faults, slice) }
    case "user": {
      const { content } = message
      if (content === undefined || content === null || (typeof content !== "string" && content.length === 0)) {
        faults.at(`${field}.content`, "is required")
      }
      return { role: "user", parts: yield* contentParts(content, `${field}.content`, faults, slice) }
    }
    case "assistant":
      return { role: "assistant", parts: yield* assistantParts(message, field, faults, slice) }
    case "tool":
    case "function":
      return {
        role: "tool",
        parts: [{
          _tag: "Result",
          callId: message.tool_call_id ?? "",
          name: message.name ?? undefined,
          content: yield* contentParts(message.content, `${field}.content`, faults, slice),
          isError: false
        }]
      }
  }
}

const toolChoice = (choice: Request["tool_choice"]): ToolChoice => {
  switch (choice) {
    case undefined:
    case null:
    case "auto":
      return { _tag: "Auto" }
    case "none":
      return { _tag: "None" }
    case "required":
      return { _tag: "Required" }
    default:
      return { _tag: "Function", name: choice.function.name }
  }
}

const output = (format: Request["response_format"]): StructuredOutput | undefined => {
  if (format === undefined || format === null) return undefined
  if (format.type !== "json_schema") return format.type === "text" ? undefined : { _tag: "JsonObject" }
  const { description, name, schema, strict } = format.json_schema
  return {
    _tag: "JsonSchema",
    name: name ?? undefined,
    description: description ?? undefined,
    schema: schema ?? {},
    strict: strict ?? undefined
  }
}

const stopSequences = (stop: Request["stop"]): ReadonlyArray<string> =>
  stop === undefined || stop === null ? [] : typeof stop === "string" ? [stop] : stop

/** The conversation that a request asks to continue. */
export function* decodeChat(request: Request): Sliced<Result.Result<Conversation, GatewayError>> {
  const faults = new Faults()
  const slice = new Slice()
  const turns: Array<Turn> = []
  for (let i = 0; i < request.messages.length; i++) {
    const message = request.messages[i]!
    if (slice.add(1)) yield slice.end()
    turns.push(plainTurn(message) ?? (yield* turn(message, `messages[${i}]`, faults, slice)))
  }
  if (request.n !== undefined && request.n !== null && request.n !== 1) {
    faults.at("n", "only 1 choice is supported")
  }
  return faults.result<Conversation>({
    turns,
    tools: (request.tools ?? []).map((tool) => ({
      name: tool.function.name,
      description: tool.function.description ?? undefined,
      parameters: tool.function.parameters ?? undefined,
      strict: tool.function.strict ?? undefined
    })),
    toolChoice: toolChoice(request.tool_choice),
    parallelToolCalls: request.parallel_tool_calls !== false,
    stop: stopSequences(request.stop),
    sampling: {
      temperature: request.temperature ?? undefined,
      topP: request.top_p ?? undefined,
      topK: request.top_k ?? undefined,
      maxTokens: request.max_tokens ?? undefined,
      maxCompletionTokens: request.max_completion_tokens ?? undefined,
      seed: request.seed ?? undefined,
      presencePenalty: request.presence_penalty ?? undefined,
      frequencyPenalty: request.frequency_penalty ?? undefined,
      logitBias: request.logit_bias ?? undefined,
      reasoningEffort: request.reasoning_effort ?? undefined
    },
    output: output(request.response_format)
  })
}
