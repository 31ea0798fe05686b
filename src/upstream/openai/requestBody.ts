/**
 * From the canonical conversation to the body of a chat request to an OpenAI-compatible server.
 */
import type {
  Conversation,
  FilePart,
  ImagePart,
  Json,
  Part,
  Sampling,
  StructuredOutput,
  TextPart,
  ToolChoice,
  Turn
} from "../../domain/Conversation.ts"
import { toolsEnabled } from "../../domain/Conversation.ts"
import { declareTools } from "../../tools/declaration.ts"
import { disarm } from "../../tools/disarm.ts"
import { renderCall, renderResult } from "../../tools/history.ts"

/** How tools reach the model: as the server's own, or declared in the prompt. */
export type ToolMode = "native" | "prompt"

type Message = { readonly [key: string]: Json }

const dataUrl = (data: string, mediaType: string | undefined) =>
  `data:${mediaType ?? "application/octet-stream"};base64,${data}`

const contentPart = (part: TextPart | ImagePart | FilePart): Json => {
  switch (part._tag) {
    case "Text":
      return { type: "text", text: part.text }
    case "Image":
      return {
        type: "image_url",
        image_url: {
          url: part.data === undefined ? part.url ?? "" : dataUrl(part.data, part.mediaType ?? "image/png"),
          ...(part.detail === undefined ? {} : { detail: part.detail })
        }
      }
    case "File":
      if (part.kind === "audio" && part.data !== undefined) {
        return { type: "input_audio", input_audio: { data: part.data, format: part.mediaType?.split("/")[1] ?? "wav" } }
      }
      if (part.kind === "video" && part.url !== undefined) return { type: "video_url", video_url: { url: part.url } }
      if (part.data === undefined && part.id === undefined) {
        return { type: "text", text: `[${part.kind} omitted: ${part.url ?? part.name ?? "no content"}]` }
      }
      return {
        type: "file",
        file: {
          ...(part.data === undefined ? {} : { file_data: dataUrl(part.data, part.mediaType) }),
          ...(part.id === undefined ? {} : { file_id: part.id }),
          ...(part.name === undefined ? {} : { filename: part.name })
        }
      }
  }
}

const isContent = (part: Part): part is TextPart | ImagePart | FilePart =>
  part._tag === "Text" || part._tag === "Image" || part._tag === "File"

/** A string where it is text alone, which every server takes; else a list of parts. */
const content = (parts: ReadonlyArray<TextPart | ImagePart | FilePart>): Json =>
  parts.every((part) => part._tag === "Text")
    ? parts.map((part) => part.text).join("\n\n")
    : parts.map(contentPart)

const nativeMessages = (turn: Turn): ReadonlyArray<Message> => {
  if (turn.role === "tool") {
    return turn.parts.flatMap((part): ReadonlyArray<Message> =>
      part._tag === "Result"
        ? [{ role: "tool", tool_call_id: part.callId, content: content(part.content) }]
        : isContent(part)
        ? [{ role: "user", content: content([part]) }]
        : []
    )
  }
  const calls = turn.parts.flatMap((part): ReadonlyArray<Json> =>
    part._tag === "Call"
      ? [{ id: part.id, type: "function", function: { name: part.name, arguments: part.arguments } }]
      : []
  )
  const said = turn.parts.filter(isContent)
  if (calls.length === 0) return [{ role: turn.role, content: content(said) }]
  return [{ role: "assistant", content: said.length === 0 ? null : content(said), tool_calls: calls }]
}

/** With tools in the prompt, calls and results are text, in the form in which the declaration asks for them. */
const promptMessages = (turn: Turn): ReadonlyArray<Message> => {
  const parts = turn.parts.flatMap((part): ReadonlyArray<TextPart | ImagePart | FilePart> => {
    switch (part._tag) {
      case "Call":
        return [{ _tag: "Text", text: renderCall(part) }]
      case "Result":
        return [{ _tag: "Text", text: renderResult(part) }, ...part.content.filter((each) => each._tag !== "Text")]
      case "Text":
        return [turn.role === "assistant" ? part : { _tag: "Text", text: disarm(part.text) }]
      case "Reasoning":
        return []
      default:
        return [part]
    }
  })
  return parts.length === 0 ? [] : [{ role: turn.role === "tool" ? "user" : turn.role, content: content(parts) }]
}

const messages = (conversation: Conversation, mode: ToolMode): ReadonlyArray<Message> => {
  if (mode === "native") return conversation.turns.flatMap(nativeMessages)
  const turns = conversation.turns.flatMap(promptMessages)
  if (!toolsEnabled(conversation)) return turns
  const declaration = declareTools(conversation.tools, conversation.toolChoice, conversation.parallelToolCalls)
  const first = turns[0]
  // Many chat templates take one system message, and only at the start.
  return first !== undefined && first["role"] === "system" && typeof first["content"] === "string"
    ? [{ role: "system", content: `${first["content"]}\n\n${declaration}` }, ...turns.slice(1)]
    : [{ role: "system", content: declaration }, ...turns]
}

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

const nativeTools = (conversation: Conversation): Message => {
  if (!toolsEnabled(conversation)) return {}
  return {
    tools: conversation.tools.map((tool) => ({
      type: "function",
      function: {
        name: tool.name,
        ...(tool.description === undefined ? {} : { description: tool.description }),
        parameters: tool.parameters ?? { type: "object", properties: {} },
        ...(tool.strict === undefined ? {} : { strict: tool.strict })
      }
    })),
    ...(conversation.toolChoice._tag === "Auto" ? {} : { tool_choice: toolChoice(conversation.toolChoice) }),
    ...(conversation.parallelToolCalls ? {} : { parallel_tool_calls: false })
  }
}

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
  logitBias: "logit_bias",
  reasoningEffort: "reasoning_effort"
} as const satisfies Record<keyof Sampling, string>

/** Only what the caller gave: servers refuse fields that they do not know. */
const sampling = (given: Sampling): Message => {
  const fields: Record<string, Json> = {}
  for (const key of Object.keys(fieldNames) as ReadonlyArray<keyof Sampling>) {
    const value = given[key]
    if (value !== undefined) fields[fieldNames[key]] = value
  }
  return fields
}

/** The body's JSON text. Always streamed, with usage at the end. */
export const requestBody = (model: string, conversation: Conversation, mode: ToolMode): string =>
  JSON.stringify({
    model,
    messages: messages(conversation, mode),
    stream: true,
    stream_options: { include_usage: true },
    ...(mode === "native" ? nativeTools(conversation) : {}),
    ...sampling(conversation.sampling),
    ...(conversation.stop.length === 0 ? {} : { stop: conversation.stop }),
    ...(conversation.output === undefined ? {} : { response_format: responseFormat(conversation.output) })
  })
