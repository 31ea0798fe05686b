/**
 * The conversation as the messages of a chat request, with native tools or tools as text.
 *
 * Servers apply the chat template of a model, and templates are strict: results directly follow their calls; and in messages
 * that the gateway composes, roles alternate and a system message comes first only.
 */
import {
  type CallPart,
  type Conversation,
  type Part,
  Reasoning,
  type ReasoningPart,
  type ResultPart,
  Text,
  type TextPart,
  toolsEnabled,
  type Turn
} from "../../domain/Conversation.ts"
import type { Json } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import { sealedBy, standInSignature, withoutThinking } from "../../domain/sealed.ts"
import {
  type Cooperative,
  eachCooperatively,
  filterCooperatively,
  mapCooperatively,
  Slice
} from "../../domain/stream/cooperative.ts"
import { declareToolsCooperatively } from "../../sieve/declaration.ts"
import { disarmCooperatively } from "../../sieve/disarm.ts"
import { renderCallCooperatively, renderResultCooperatively } from "../../sieve/history.ts"
import { historyFields, type ReasoningNames, unknownNames } from "./chatThinking.ts"
import { type Sends, withVendorFieldsOf } from "./chatVendorFields.ts"
import { type Content, contentOf } from "./contentParts.ts"
import type { HistoryReasoning } from "./serverThinking.ts"

/** How tools reach the model: by the server's API, or declared in the prompt. */
export type ToolMode = "native" | "prompt"

/** A JSON object to send. */
export type JsonObject = { readonly [key: string]: Json }

const never: Sends = () => false

const isText = (part: Part): part is TextPart => part._tag === "Text"
const isContent = (part: Part): part is Content => part._tag === "Text" || part._tag === "Image" || part._tag === "File"
const isCall = (part: Part): part is CallPart => part._tag === "Call"
const isReasoning = (part: Part): part is ReasoningPart => part._tag === "Reasoning"
const isResult = (part: Part): part is ResultPart => part._tag === "Result"

/** Templates that accept a system message only at the start fail on a conversation that ends with one. */
const withoutSystemEnd = (turns: ReadonlyArray<Turn>): ReadonlyArray<Turn> => {
  const last = turns.at(-1)
  return last?.role === "system" && turns.some(({ role }) => role !== "system")
    ? [...turns.slice(0, -1), { role: "user", parts: last.parts }]
    : turns
}

/** The name of the participant, as a field of the message. */
const nameOf = ({ name }: Turn): { readonly name?: string } => name === undefined ? {} : { name }

/** Signatures that clients of the content-generation API invent for a call without one. Strict servers refuse the field. */
const placeholders: ReadonlySet<Json | undefined> = new Set([
  "skip_thought_signature_validator",
  "context_engineering_is_the_way_to_go"
])

const isPlaceholder = (
  extra: Json
): boolean => (isFields(extra) && isFields(extra["google"]) && placeholders.has(extra["google"]["thought_signature"]))

/** `needsSignature`: the model refuses the call without a signature. */
const nativeCall = (part: CallPart, needsSignature: boolean, sends: Sends): Json => {
  const { arguments: text, id, name, sealed = {} } = part
  const call = { id, type: "function", function: { name, arguments: text } }
  const { extra_content: extra, reasoning_details: _, reasoning_items: __, ...own } = withoutThinking(sealed).fields
  const isSigned = extra !== undefined && !isPlaceholder(extra)
  const signed = isSigned ? { extra_content: extra } : needsSignature ? sealedBy(standInSignature) : {}
  return withVendorFieldsOf(part, { ...own, ...signed, ...call }, sends)
}

/** The thinking of a turn: its own, or what is kept of its calls. */
const thinkingIn = (turn: Turn): ReadonlyArray<ReasoningPart> => {
  const own = turn.parts.filter(isReasoning)
  if (own.length > 0) return own
  return turn.parts.flatMap((part): ReadonlyArray<ReasoningPart> => {
    const { text } = withoutThinking(part._tag === "Call" ? part.sealed ?? {} : {})
    return text === "" ? [] : [Reasoning(text)]
  })
}

/** How earlier turns go back. */
export interface HistoryOptions {
  readonly history: HistoryReasoning | undefined
  readonly names: ReasoningNames | undefined
}

/** All of them go back. */
export const allHistory: HistoryOptions = { history: undefined, names: undefined }

/** What the server gets of the vendor's own. */
export interface SentFields {
  /** Tells which vendor fields are sent. */
  readonly sends: Sends
  /** The model refuses calls without a signature. */
  readonly wantsSignatures: boolean
}

/** The thinking of a turn by the server's names, as far as it goes back. */
interface SentThinking {
  readonly isSent: (index: number) => boolean
  readonly fields: (parts: ReadonlyArray<ReasoningPart>) => JsonObject
}

/** Templates leave out what a model should not see of earlier turns, so that all of it is sent by default. */
const sentThinking = (
  turns: ReadonlyArray<Turn>,
  { history = "all", names = unknownNames() }: HistoryOptions
): SentThinking => {
  const after = history === "current" ? turns.findLastIndex(({ role }) => role === "user") : -1
  return {
    isSent: (index) => history !== "none" && index > after,
    fields: (parts) => {
      const text = parts.map(({ text }) => text).join("")
      return text === "" ? {} : historyFields(text, names)
    }
  }
}

function* assistantMessage(
  turn: Turn,
  index: number,
  { fields, isSent }: SentThinking,
  { sends, wantsSignatures }: SentFields,
  slice: Slice
): Cooperative<JsonObject> {
  const name = nameOf(turn)
  const thinking = isSent(index) ? fields(thinkingIn(turn)) : {}
  const said = yield* filterCooperatively(slice, turn.parts, isContent)
  const calls = yield* filterCooperatively(slice, turn.parts, isCall)
  const details = calls[0]?.sealed?.["reasoning_details"]
  if (calls.length === 0) {
    return { role: "assistant", ...name, content: yield* contentOf(said, slice, sends), ...thinking }
  }
  return {
    role: "assistant",
    ...name,
    content: said.length === 0 ? null : yield* contentOf(said, slice, sends),
    ...thinking,
    ...(details === undefined ? {} : { reasoning_details: details }),
    tool_calls: yield* mapCooperatively(slice, calls, (part, i) => nativeCall(part, i === 0 && wantsSignatures, sends))
  }
}

/** The text of a turn that has a single text part, as most have. */
const onlyText = ({ vendorFields, parts }: Turn): string | undefined => {
  const first = parts[0]
  return parts.length === 1 && first?._tag === "Text" && first.vendorFields === undefined && vendorFields === undefined
    ? first.text
    : undefined
}

function* turnMessage(
  turn: Turn,
  index: number,
  thinking: SentThinking,
  sent: SentFields,
  slice: Slice
): Cooperative<JsonObject> {
  const { sends } = sent
  const message = turn.role === "assistant"
    ? yield* assistantMessage(turn, index, thinking, sent, slice)
    : {
      role: turn.role,
      ...nameOf(turn),
      content: yield* contentOf(yield* filterCooperatively(slice, turn.parts, isContent), slice, sends)
    }
  return withVendorFieldsOf(turn, message, sends)
}

/** The texts of a failed call. `tool` messages have no field for this, so the text says it. */
const asError = ([first = Text(""), ...others]: ReadonlyArray<TextPart>): ReadonlyArray<TextPart> =>
  /^error\b/i.test(first.text) ? [first, ...others] : [Text(`Error: ${first.text}`.trimEnd()), ...others]

/** The results of a turn as messages; their other content is added to `shown`. */
function* resultMessages(
  { parts }: Turn,
  messages: Array<JsonObject>,
  shown: Array<Content>,
  sends: Sends,
  slice: Slice
): Cooperative<void> {
  for (const part of yield* filterCooperatively(slice, parts, isResult)) {
    const { callId, content, isError, isNamed, name } = part
    const said = yield* filterCooperatively(slice, content, isText)
    const texts = isError ? asError(said) : said
    const message = {
      role: "tool",
      ...(isNamed === true && name !== undefined ? { name } : {}),
      tool_call_id: callId,
      content: yield* contentOf(texts, slice, sends)
    }
    messages.push(withVendorFieldsOf(part, message, sends))
    yield* eachCooperatively(content, (part) => void (part._tag !== "Text" && shown.push(part)), slice)
  }
  yield* eachCooperatively(parts, (part) => void (isContent(part) && shown.push(part)), slice)
}

/** Results as `tool` messages, which accept text alone; their images and files follow in one user message. */
function* nativeMessages(
  turns: ReadonlyArray<Turn>,
  thinking: SentThinking,
  sent: SentFields,
  slice: Slice
): Cooperative<ReadonlyArray<JsonObject>> {
  const { sends } = sent
  const messages: Array<JsonObject> = []
  let shown: Array<Content> = []
  for (let i = 0; i < turns.length; i++) {
    const turn = turns[i]!
    if (slice.add(1)) yield slice.end()
    if (turn.role === "tool") {
      yield* resultMessages(turn, messages, shown, sends, slice)
      continue
    }
    if (shown.length > 0) {
      messages.push({ role: "user", content: yield* contentOf(shown, slice, sends) })
      shown = []
    }
    const content = onlyText(turn)
    messages.push(
      content === undefined
        ? yield* turnMessage(turn, i, thinking, sent, slice)
        : { role: turn.role, ...nameOf(turn), content }
    )
  }
  if (shown.length > 0) messages.push({ role: "user", content: yield* contentOf(shown, slice, sends) })
  return messages
}

/** Calls and results as text, in the form that the declaration asks for. */
function* asContent(part: Part, slice: Slice): Cooperative<ReadonlyArray<Content>> {
  switch (part._tag) {
    case "Call":
      return [Text(yield* renderCallCooperatively(part, slice))]
    case "Result":
      return [
        Text(yield* renderResultCooperatively(part, slice)),
        ...part.content.filter((each) => each._tag !== "Text")
      ]
    case "Text":
      return [Text(yield* disarmCooperatively(part.text, slice))]
    case "Reasoning":
      return []
    default:
      return [part]
  }
}

/** Messages that the gateway composes have no field for a participant's name. */
function* heading(name: string, slice: Slice): Cooperative<Content> {
  return Text(yield* disarmCooperatively(`${name}:`, slice))
}

function* promptMessages(
  turns: ReadonlyArray<Turn>,
  declaration: string,
  thinking: SentThinking,
  slice: Slice
): Cooperative<ReadonlyArray<JsonObject>> {
  interface Merged {
    readonly role: "system" | "user" | "assistant"
    readonly parts: Array<Content>
    readonly thoughts: Array<ReasoningPart>
  }
  const merged: Array<Merged> = []
  const messageFor = (role: Merged["role"]): Merged => {
    const last = merged.at(-1)
    if (last?.role === role) return last
    const message: Merged = { role, parts: [], thoughts: [] }
    merged.push(message)
    return message
  }
  const add = (role: Merged["role"], parts: ReadonlyArray<Content>) => {
    if (parts.length === 0) return
    const last = messageFor(role)
    // One by one, because a call accepts a limited number of arguments.
    for (const part of parts) last.parts.push(part)
  }
  const leading = turns.findIndex(({ role }) => role !== "system")
  for (const [i, turn] of turns.entries()) {
    if (i === leading) add("system", declaration === "" ? [] : [Text(declaration)])
    if (turn.name !== undefined) add(turn.role === "tool" ? "user" : turn.role, [yield* heading(turn.name, slice)])
    for (const part of turn.parts) {
      if (slice.add(1)) yield slice.end()
      if (part._tag === "Reasoning") {
        if (thinking.isSent(i) && part.text !== "") messageFor("assistant").thoughts.push(part)
      } else {
        add(turn.role === "tool" ? "user" : turn.role, yield* asContent(part, slice))
      }
    }
  }
  if (leading === -1 && declaration !== "") add("system", [Text(declaration)])
  const messages: Array<JsonObject> = []
  for (const { parts, role, thoughts } of merged) {
    if (slice.add(1)) yield slice.end()
    messages.push({ role, content: yield* contentOf(parts, slice, never), ...thinking.fields(thoughts) })
  }
  return messages
}

/** The messages of a conversation with linked calls. Without tools, calls or results they are the caller's own in both modes. */
export function* messagesOf(
  conversation: Conversation,
  mode: ToolMode,
  sent: SentFields,
  options: HistoryOptions
): Cooperative<ReadonlyArray<JsonObject>> {
  const slice = new Slice()
  const { turns } = conversation
  const enabled = toolsEnabled(conversation)
  if (mode === "native" || !(enabled || turns.some((turn) => turn.parts.some(isCall) || turn.parts.some(isResult)))) {
    return yield* nativeMessages(turns, sentThinking(turns, options), sent, slice)
  }
  const { parallelToolCalls, toolChoice, tools } = conversation
  const declaration = enabled ? yield* declareToolsCooperatively(tools, toolChoice, parallelToolCalls, slice) : ""
  return yield* promptMessages(withoutSystemEnd(turns), declaration, sentThinking(turns, options), slice)
}
