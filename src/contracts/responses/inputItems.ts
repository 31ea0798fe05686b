/**
 * The conversation as the items of a request to a Responses server. The system prompt at the start is its `instructions`.
 */
import {
  type CallPart,
  type Conversation,
  type FilePart,
  type ImagePart,
  type Part,
  type ReasoningPart,
  type ResultPart,
  Text,
  type TextPart,
  type Turn
} from "../../domain/Conversation.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import { type Cooperative, Slice } from "../../domain/stream/cooperative.ts"
import { audioFormat } from "../shared/contentParts.ts"
import { fileName } from "../shared/fileName.ts"
import type { HistoryReasoning } from "../shared/serverThinking.ts"

/** A part of the content of a message or of a result. */
type Content = TextPart | ImagePart | FilePart

const isContent = (part: Part): part is Content => part._tag === "Text" || part._tag === "Image" || part._tag === "File"

const isText = (part: Part): part is TextPart => part._tag === "Text"

const dataUrl = (data: string, mediaType: string) => `data:${mediaType};base64,${data}`

const imagePart = ({ data, detail, mediaType, url }: ImagePart): JsonFields => ({
  type: "input_image",
  image_url: data === undefined ? url ?? "" : dataUrl(data, mediaType ?? "image/png"),
  ...(detail === undefined ? {} : { detail })
})

const filePart = (part: FilePart): JsonFields => {
  const { data, id, kind, mediaType, name, url } = part
  const filename = fileName(part)
  if (kind === "audio" && data !== undefined) {
    return { type: "input_audio", input_audio: { data, format: audioFormat(mediaType) } }
  }
  if (kind !== "file" || (data === undefined && id === undefined && url === undefined)) {
    return { type: "input_text", text: `[${kind} omitted: ${name ?? url ?? "no content"}]` }
  }
  return {
    type: "input_file",
    ...(data === undefined ? {} : { file_data: dataUrl(data, mediaType ?? "application/octet-stream") }),
    ...(id === undefined ? {} : { file_id: id }),
    ...(data === undefined && url !== undefined ? { file_url: url } : {}),
    ...(filename === undefined ? {} : { filename })
  }
}

const inputPart = (part: Content): JsonFields => {
  switch (part._tag) {
    case "Text":
      return { type: "input_text", text: part.text }
    case "Image":
      return imagePart(part)
    case "File":
      return filePart(part)
  }
}

/** Words of the model. What is no text is named. */
const outputPart = (part: Content): JsonFields => ({
  type: "output_text",
  text: part._tag === "Text" ? part.text : `[${part._tag === "Image" ? "image" : part.kind} omitted]`,
  annotations: []
})

/** Text alone as a string, which every server reads. */
const contentOf = (parts: ReadonlyArray<Content>): Json => {
  const [first, ...others] = parts
  return first?._tag === "Text" && others.length === 0 ? first.text : parts.map(inputPart)
}

const message = (role: string, content: Json): JsonFields => ({ type: "message", role, content })

/** Results have no field for a failure, so that the text says it. */
const resultItem = ({ callId, content, isError }: ResultPart): JsonFields => {
  const texts = content.filter(isText).map(({ text }) => text).join("\n\n")
  const output = content.every(isText) ? texts : content.map(inputPart)
  const failed = isError && !/^error\b/i.test(texts)
  const said = !failed
    ? output
    : typeof output === "string"
    ? `Error: ${output}`.trimEnd()
    : [{ type: "input_text", text: "Error:" }, ...output]
  return { type: "function_call_output", call_id: callId, output: said }
}

/** The items of reasoning that the server sealed before a call. */
const sealedItems = ({ sealed }: CallPart): ReadonlyArray<JsonFields> => {
  const items = sealed?.["reasoning_items"]
  return Array.isArray(items) ? items.filter((item: Json) => isFields(item)) : []
}

const callItem = ({ arguments: args, id, name }: CallPart): JsonFields => ({
  type: "function_call",
  call_id: id,
  name,
  arguments: args
})

/** How the thinking of earlier turns goes back. */
export interface HistoryOptions {
  readonly history: HistoryReasoning | undefined
  /** The server sends its models' thinking itself, and so reads it too. */
  readonly readsThinking: boolean
}

const thinkingItem = (text: string): JsonFields => ({
  type: "reasoning",
  summary: [],
  content: [{ type: "reasoning_text", text }]
})

/** What a turn says, in order; the words between its calls are messages. */
function* assistantItems(
  { name, parts }: Turn,
  isThinkingSent: boolean,
  slice: Slice
): Cooperative<ReadonlyArray<JsonFields>> {
  const items: Array<JsonFields> = []
  const isSealed = parts.some((part) => part._tag === "Call" && sealedItems(part).length > 0)
  const thoughts: Array<ReasoningPart> = []
  let words: Array<JsonFields> = name === undefined ? [] : [{ type: "output_text", text: `${name}:`, annotations: [] }]
  const speak = () => {
    if (words.length > 0) items.push(message("assistant", words))
    words = []
  }
  const think = () => {
    const text = thoughts.splice(0).map(({ text }) => text).join("")
    if (text !== "") items.push(thinkingItem(text))
  }
  for (const part of parts) {
    if (slice.add(1)) yield slice.end()
    if (part._tag === "Reasoning") {
      if (isThinkingSent && !isSealed) thoughts.push(part)
      continue
    }
    if (thoughts.length > 0) {
      speak()
      think()
    }
    if (isContent(part)) words.push(outputPart(part))
    else if (part._tag === "Call") {
      speak()
      for (const item of sealedItems(part)) items.push(item)
      items.push(callItem(part))
    }
  }
  speak()
  think()
  return items
}

/** The items of a request, and its instructions. */
export interface Input {
  readonly instructions: string | undefined
  readonly items: ReadonlyArray<JsonFields>
}

const systemText = (turns: ReadonlyArray<Turn>): string =>
  turns.flatMap(({ parts }) => parts).filter(isText).map(({ text }) => text).join("\n\n")

/** The items of a conversation with linked calls. */
export function* inputOf(
  conversation: Conversation,
  { history = "all", readsThinking }: HistoryOptions
): Cooperative<Input> {
  const slice = new Slice()
  const { turns } = conversation
  const leading = turns.findIndex(({ role }) => role !== "system")
  // A request without input is refused, so that instructions alone are a message.
  const from = leading === -1 ? 0 : leading
  const instructions = systemText(turns.slice(0, from))
  const after = history === "current" ? turns.findLastIndex(({ role }) => role === "user") : -1
  const items: Array<JsonFields> = []
  for (let i = from; i < turns.length; i++) {
    const turn = turns[i]!
    if (slice.add(1, turn.parts.length)) yield slice.end()
    if (turn.role === "assistant") {
      const isThinkingSent = readsThinking === true && history !== "none" && i > after
      for (const item of yield* assistantItems(turn, isThinkingSent, slice)) items.push(item)
      continue
    }
    for (const part of turn.parts) if (part._tag === "Result") items.push(resultItem(part))
    const content = turn.parts.filter(isContent)
    const named = turn.name === undefined ? content : [Text(`${turn.name}:`), ...content]
    if (turn.role === "tool" && content.length === 0) continue
    items.push(message(turn.role === "system" ? "developer" : "user", contentOf(named)))
  }
  return { instructions: instructions === "" ? undefined : instructions, items }
}
