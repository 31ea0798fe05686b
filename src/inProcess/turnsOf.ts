/**
 * Converts a prompt of `effect/ai` to the turns of a conversation.
 */
import type * as Prompt from "effect/ai/Prompt"
import * as Base64 from "effect/encoding/Base64"
import {
  type FilePart,
  type ImagePart,
  type Part,
  type ResultPart,
  Text,
  type TextPart,
  type Turn
} from "../domain/Conversation.ts"

const dataOf = (data: Prompt.FilePart["data"]) =>
  data instanceof URL
    ? { url: data.href, data: undefined }
    : { url: undefined, data: typeof data === "string" ? data : Base64.encode(data) }

const fileOf = ({ data, fileName, mediaType }: Prompt.FilePart): ImagePart | FilePart => {
  const family = mediaType.split("/")[0]
  if (family === "image") {
    return { _tag: "Image", vendorFields: undefined, ...dataOf(data), mediaType, detail: undefined }
  }
  const kind = family === "audio" || family === "video" ? family : "file"
  return { _tag: "File", kind, name: fileName, vendorFields: undefined, ...dataOf(data), id: undefined, mediaType }
}

const userPart = (part: Prompt.UserMessagePart): TextPart | ImagePart | FilePart =>
  part.type === "text" ? Text(part.text) : fileOf(part)

const resultOf = ({ id, isFailure, modelOutput, name, result }: Prompt.ToolResultPart): ResultPart => ({
  _tag: "Result",
  callId: id,
  name,
  content: modelOutput?.map(userPart) ?? [Text(typeof result === "string" ? result : JSON.stringify(result) ?? "")],
  isError: isFailure,
  isNamed: undefined,
  vendorFields: undefined
})

/** The parts of an assistant message. Calls that the provider ran itself are left out. */
const assistantPart = (part: Prompt.AssistantMessagePart): ReadonlyArray<Part> => {
  switch (part.type) {
    case "text":
      return [Text(part.text)]
    case "reasoning":
      return [{ _tag: "Reasoning", text: part.text, vendorFields: undefined }]
    case "file":
      return [fileOf(part)]
    case "tool-call":
      return part.providerExecuted
        ? []
        : [{
          _tag: "Call",
          id: part.id,
          name: part.name,
          arguments: JSON.stringify(part.params ?? {}),
          sealed: undefined,
          vendorFields: undefined
        }]
    case "tool-result":
    case "tool-approval-request":
      return []
  }
}

const turn = (message: Prompt.Message): Turn => {
  switch (message.role) {
    case "system":
      return { role: "system", parts: [Text(message.content)] }
    case "user":
      return { role: "user", parts: message.content.map(userPart) }
    case "assistant":
      return { role: "assistant", parts: message.content.flatMap(assistantPart) }
    case "tool":
      return {
        role: "tool",
        parts: message.content.flatMap((part) => part.type === "tool-result" ? [resultOf(part)] : [])
      }
  }
}

/** The turns of a prompt, without empty turns. */
export const turnsOf = (prompt: Prompt.Prompt): ReadonlyArray<Turn> =>
  prompt.content.map(turn).filter(({ parts }) => parts.length > 0)
