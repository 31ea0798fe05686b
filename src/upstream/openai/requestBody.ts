/**
 * From the canonical conversation to the body of a chat request to an OpenAI-compatible server.
 */
import {
  type Conversation,
  type Json,
  type Sampling,
  type StructuredOutput,
  type ToolChoice,
  toolsEnabled
} from "../../domain/Conversation.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { type HistoryOptions, type JsonObject, messagesOf, type ToolMode } from "./messages.ts"
import { addThinking, type ThinkingWords } from "./thinking.ts"

const toolChoice = (choice: ToolChoice): Json => {
  switch (choice._tag) {
    case "Auto":
      return "auto"
    case "None":
      return "none"
    case "Required":
      return "required"
    case "Function":
      return { type: "function", function: { name: choice.name } }
  }
}

const nativeTools = ({ parallelToolCalls, toolChoice: choice, tools }: Conversation): JsonObject => ({
  tools: tools.map(({ description, name, parameters, strict }) => ({
    type: "function",
    function: {
      name,
      ...(description === undefined ? {} : { description }),
      parameters: parameters ?? { type: "object", properties: {} },
      ...(strict === undefined ? {} : { strict })
    }
  })),
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
} as const satisfies Record<keyof Sampling, string>

const samplingKeys = Object.keys(fieldNames) as ReadonlyArray<keyof Sampling>

/** Adds only the caller's fields, because servers refuse unknown ones. */
const addSampling = (request: Record<string, Json>, given: Sampling): void => {
  for (const key of samplingKeys) {
    const value = given[key]
    if (value !== undefined) request[fieldNames[key]] = value
  }
}

/** A request to send. */
export interface ChatRequest {
  readonly body: string
  /** The stop sequences of the request to the server. */
  readonly stop: ReadonlyArray<string>
}

/** How the server is told of thinking. */
export interface ThinkingOptions extends HistoryOptions {
  readonly words?: ThinkingWords | undefined
}

/** The request of a conversation, with the server's name of the model. Always streamed, with usage at the end. */
export function* chatRequest(
  model: string,
  conversation: Conversation,
  mode: ToolMode,
  thinking: ThinkingOptions = {}
): Cooperative<ChatRequest> {
  const enabled = toolsEnabled(conversation)
  // A sequence within the arguments of a call as text would end the call, so the gateway applies the sequences itself.
  const stop = enabled && mode === "prompt" ? [] : conversation.stop
  const request: Record<string, Json> = {
    ...conversation.serverFields,
    model,
    messages: yield* messagesOf(conversation, mode, thinking),
    stream: true,
    stream_options: { include_usage: true }
  }
  if (enabled && mode === "native") Object.assign(request, nativeTools(conversation))
  addSampling(request, conversation.sampling)
  addThinking(request, conversation, thinking.words)
  if (stop.length > 0) request["stop"] = stop
  if (conversation.output !== undefined) request["response_format"] = responseFormat(conversation.output)
  return { body: JSON.stringify(request), stop }
}
