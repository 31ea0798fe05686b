/**
 * Decodes a chat-completions request to the canonical conversation.
 */
import type * as Result from "effect/Result"
import {
  type CallPart,
  type Conversation,
  type Part,
  plainConversation,
  Reasoning,
  type StructuredOutput,
  Text,
  type ToolChoice,
  type ToolDeclaration,
  type Turn,
  type VendorTool,
  withVendorFields
} from "../../domain/Conversation.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { type Cooperative, mapCooperatively, Slice } from "../../domain/stream/cooperative.ts"
import type { VendorFields } from "../../domain/VendorFields.ts"
import { commonSampling, contentParts, messageReasoning, stopSequences } from "../shared/chatFamily.ts"
import { call, declaration, jsonSchemaOutput, result, toolChoices } from "../shared/conversation.ts"
import { Faults } from "../shared/Faults.ts"
import { effortSaid, thinkingFields } from "../shared/thinking.ts"
import { mostChoices } from "./facts.ts"
import type { ChatMessage, ChatRequest, ChatTool } from "./schema.ts"

type Request = typeof ChatRequest.Type
type Message = typeof ChatMessage.Type

/** What only the upstream reads of a call; the first call has what its message has. */
const sealedOf = (
  { extra_content: extra }: NonNullable<Message["tool_calls"]>[number],
  message: Message | undefined
): CallPart["sealed"] => {
  const details = message?.reasoning_details ?? []
  if (!extra && details.length === 0) return undefined
  return {
    ...(extra ? { extra_content: extra } : {}),
    ...(details.length === 0 ? {} : { reasoning_details: details })
  }
}

/** Reasoning, text, refusal and calls of an assistant message, in this order. */
function* assistantParts(
  message: Message,
  field: string,
  faults: Faults,
  slice: Slice
): Cooperative<ReadonlyArray<Part>> {
  const { content, function_call, refusal, tool_calls } = message
  const reasoning = messageReasoning(message)
  const parts: Array<Part> = reasoning === "" ? [] : [Reasoning(reasoning)]
  const text = yield* contentParts(content, `${field}.content`, faults, slice)
  const calls = yield* mapCooperatively(
    slice,
    tool_calls ?? [],
    (sent, i) =>
      withVendorFields(
        call(sent.id, sent.function.name, sent.function.arguments, sealedOf(sent, i === 0 ? message : undefined)),
        faults.attach(`${field}.tool_calls[${i}]`)
      )
  )
  // A message with both fields repeats the same call.
  if (function_call?.name && calls.length === 0) calls.push(call("", function_call.name, function_call.arguments))
  return parts.concat(text, refusal ? [Text(refusal)] : [], calls)
}

/** The turn of a message that is one text, as most are: needs no generator. */
const plainTurn = (message: Message): Turn | undefined => {
  const { content, name, role } = message
  if (typeof content !== "string" || content === "" || name) return undefined
  switch (role) {
    case "system":
    case "developer":
      return { role: "system", parts: [Text(content)] }
    case "user":
      return { role, parts: [Text(content)] }
    case "assistant":
      return message.tool_calls || message.function_call || message.refusal || messageReasoning(message) !== ""
        ? undefined
        : { role, parts: [Text(content)] }
    default:
      return undefined
  }
}

function* turn(message: Message, field: string, faults: Faults, slice: Slice): Cooperative<Turn> {
  const { content, role, tool_call_id: callId } = message
  const name = message.name ? { name: message.name } : {}
  if (role === "assistant") return { role, parts: yield* assistantParts(message, field, faults, slice), ...name }
  const isMissing = content === undefined || content === null || (typeof content !== "string" && content.length === 0)
  if (role === "user" && isMissing) faults.at(`${field}.content`, "is required")
  const parts = yield* contentParts(content, `${field}.content`, faults, slice)
  switch (role) {
    case "system":
    case "developer":
      return { role: "system", parts, ...name }
    case "user":
      return { role, parts, ...name }
    case "tool":
    case "function":
      return { role: "tool", parts: [result({ callId, ...name, isNamed: true, content: parts })] }
  }
}

type Tool = NonNullable<Request["tools"]>[number]

const isFunction = (tool: Tool): tool is typeof ChatTool.Type => tool.type === "function"

/** The functions that the caller runs, and the tools of other kinds. */
const tools = (sent: ReadonlyArray<Tool>, faults: Faults): Pick<Conversation, "tools" | "vendorTools"> => {
  const functions: Array<ToolDeclaration> = []
  const others: Array<VendorTool> = []
  for (const [index, tool] of sent.entries()) {
    const vendorFields = faults.attach(`tools[${index}]`)
    if (isFunction(tool)) faults.noteTool(`tools[${index}].function.name`, tool.function.name)
    if (isFunction(tool)) functions.push(withVendorFields(declaration(tool.function), vendorFields))
    else if (vendorFields !== undefined) others.push({ index, vendorFields })
  }
  return { tools: functions, vendorTools: others.length === 0 ? undefined : others }
}

/** The turn with the message's vendor fields; those of a result are its part's. */
const withTurnsFields = (turn: Turn, vendorFields: VendorFields | undefined): Turn =>
  vendorFields === undefined || turn.role !== "tool"
    ? withVendorFields(turn, vendorFields)
    : { ...turn, parts: turn.parts.map((part) => withVendorFields(part, vendorFields)) }

const toolChoice = (choice: Request["tool_choice"]): ToolChoice =>
  typeof choice === "object" && choice !== null
    ? { _tag: "Function", name: choice.function.name }
    : toolChoices[choice ?? "auto"]

const output = (format: Request["response_format"]): StructuredOutput | undefined => {
  if (format?.type === "json_schema") return jsonSchemaOutput(format.json_schema)
  return format?.type === "json_object" ? { _tag: "JsonObject" } : undefined
}

/** Decodes a request. Fails with the first fault, which names its field; `faults` has what has no effect too. */
export function* decodeChat(
  request: Request,
  faults = new Faults()
): Cooperative<Result.Result<Conversation, GatewayError>> {
  const slice = new Slice()
  const turns: Array<Turn> = []
  for (let i = 0; i < request.messages.length; i++) {
    const message = request.messages[i]!
    if (slice.add(1)) yield slice.end()
    const decoded = plainTurn(message) ?? (yield* turn(message, `messages[${i}]`, faults, slice))
    turns.push(faults.hasVendorFields ? withTurnsFields(decoded, faults.attach(`messages[${i}]`)) : decoded)
  }
  const choices = request.n ?? 1
  if (choices < 1 || choices > mostChoices) faults.at("n", `must be from 1 to ${mostChoices}`)
  return faults.result<Conversation>({
    ...plainConversation,
    turns,
    ...tools(request.tools ?? [], faults),
    toolChoice: toolChoice(request.tool_choice),
    parallelToolCalls: request.parallel_tool_calls !== false,
    stop: stopSequences(request.stop),
    sampling: {
      ...commonSampling(request),
      maxTokens: request.max_tokens ?? undefined,
      maxCompletionTokens: request.max_completion_tokens ?? undefined,
      logitBias: request.logit_bias ?? undefined
    },
    output: output(request.response_format),
    choices,
    ...thinkingFields(request, [effortSaid(request.reasoning_effort, "reasoning_effort")], ["reasoning_effort"])
  })
}
