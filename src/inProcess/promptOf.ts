/**
 * Converts a conversation to a prompt of `effect/ai`.
 */
import * as Prompt from "effect/ai/Prompt"
import * as Result from "effect/Result"
import type {
  Conversation,
  FilePart,
  ImagePart,
  Part,
  ResultPart,
  StructuredOutput,
  TextPart,
  Turn
} from "../domain/Conversation.ts"
import { linkCalls } from "../domain/linkCalls.ts"

type UserPart = Prompt.UserMessagePart

const kinds = { file: "application/octet-stream", audio: "audio/*", video: "video/*" } as const

/** A file without data or a valid URL becomes text that names it. */
const filePart = (part: ImagePart | FilePart): UserPart => {
  const image = part._tag === "Image"
  const mediaType = part.mediaType ?? (image ? "image/*" : kinds[part.kind])
  const fileName = image ? undefined : part.name
  if (part.data !== undefined) return Prompt.filePart({ mediaType, fileName, data: part.data })
  if (part.url !== undefined && URL.canParse(part.url)) {
    return Prompt.filePart({ mediaType, fileName, data: new URL(part.url) })
  }
  return Prompt.textPart({ text: `[${image ? "image" : part.kind} omitted${fileName ? `: ${fileName}` : ""}]` })
}

const userPart = (part: TextPart | ImagePart | FilePart): UserPart =>
  part._tag === "Text" ? Prompt.textPart({ text: part.text }) : filePart(part)

const textOf = (parts: ReadonlyArray<Part>): string =>
  parts.map((part) => part._tag === "Text" ? part.text : "").join("")

/** Parses arguments, since most providers expect an object; invalid JSON stays text. */
const paramsOf = (text: string): unknown => Result.getOrElse(Result.try((): unknown => JSON.parse(text)), () => text)

const assistantPart = (part: Part): ReadonlyArray<Prompt.AssistantMessagePart> => {
  switch (part._tag) {
    case "Text":
      return [Prompt.textPart({ text: part.text })]
    case "Reasoning":
      return [Prompt.reasoningPart({ text: part.text })]
    case "Call":
      return [
        Prompt.toolCallPart({ id: part.id, name: part.name, params: paramsOf(part.arguments), providerExecuted: false })
      ]
    case "Image":
    case "File":
      return [filePart(part)]
    case "Result":
      return []
  }
}

const resultPart = (part: ResultPart): Prompt.ToolResultPart =>
  Prompt.toolResultPart({
    id: part.callId,
    name: part.name ?? "unknown",
    isFailure: part.isError,
    result: textOf(part.content),
    modelOutput: part.content.map(userPart),
    providerExecuted: false
  })

const message = ({ parts, role }: Turn): Prompt.Message => {
  switch (role) {
    case "system":
      return Prompt.systemMessage({ content: textOf(parts) })
    case "assistant":
      return Prompt.assistantMessage({ content: parts.flatMap(assistantPart) })
    case "tool":
      return Prompt.toolMessage({
        content: parts.flatMap((part) => part._tag === "Result" ? [resultPart(part)] : [])
      })
    case "user":
      return Prompt.userMessage({
        content: parts.flatMap((part) =>
          part._tag === "Text" || part._tag === "Image" || part._tag === "File" ? [userPart(part)] : []
        )
      })
  }
}

/** Asks for structured output in words: a streamed prompt has no field for it. */
const outputMessage = (output: StructuredOutput): Prompt.Message =>
  Prompt.systemMessage({
    content: output._tag === "JsonObject"
      ? "Answer with one JSON object and nothing else: no code fence, no words around it."
      : "Answer with one JSON value that fits this JSON Schema exactly and nothing else: no code fence, no words around " +
        `it.\n${JSON.stringify(output.schema)}`
  })

/** The prompt of a conversation. */
export const promptOf = (conversation: Conversation): Prompt.Prompt => {
  const { output, turns } = linkCalls(conversation)
  const messages = turns.map(message)
  return Prompt.fromMessages(output === undefined ? messages : [outputMessage(output), ...messages])
}
