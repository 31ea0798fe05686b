/**
 * The conversation as the messages of a request to a messages server.
 *
 * The vendor accepts results only at the beginning of the user's message after their calls, rejects blank text, and seals the thinking of
 * its models: it goes back with its signature or not at all. The caller's own messages in this contract are sent as they are.
 */
import type { CallPart, Conversation, Part, ResultPart, Turn } from "../../domain/Conversation.ts"
import { exactArguments, isRecord, type Json } from "../../domain/json.ts"
import { type Cooperative, Slice } from "../../domain/stream/cooperative.ts"
import { parseJson } from "../shared/json.ts"
import { asSent, type Block, contentBlock, isBlock, isContent, markOf, sentFields } from "./blocks.ts"

/** The system prompt and the messages of a request. */
export interface Messages {
  readonly system: Json | undefined
  readonly messages: ReadonlyArray<Block>
}

/** True for a conversation with vendor fields of this contract. */
export const isInVendorsFormat = ({ vendorFields }: Conversation): boolean => vendorFields?.vendor === "messages"

const isBlank = (part: Part): boolean =>
  part._tag === "Text" && part.vendorFields === undefined && part.text.trim() === ""

const inputOf = (text: string): Block => isRecord(parseJson(text)) ? exactArguments(text) : text === "" ? {} : { text }

const callBlock = ({ arguments: text, id, name, vendorFields }: CallPart): Block | undefined =>
  asSent({ type: "tool_use", id, name, input: inputOf(text) }, vendorFields)

/** The only text of a list that was not a list in the caller's words. */
const onlyText = (parts: ReadonlyArray<Part>): string | undefined => {
  const first = parts[0]
  return parts.length === 1 && first?._tag === "Text" && sentFields(first.vendorFields) === undefined &&
      markOf(first.vendorFields) === undefined
    ? first.text
    : undefined
}

const resultBlock = (part: ResultPart): Block | undefined => {
  const { content, isError, vendorFields } = part
  const text = onlyText(content)
  const blocks = content.filter((each) => !isBlank(each))
  return asSent({
    type: "tool_result",
    tool_use_id: part.callId,
    ...(text !== undefined
      ? { content: text }
      : blocks.length === 0
      ? {}
      : { content: blocks.map(contentBlock).filter(isBlock) }),
    ...(isError ? { is_error: true } : {})
  }, vendorFields)
}

/** True for thinking that its server reads again: with a signature, or sealed as a whole. The gateway's own has an empty signature. */
const isSigned = (part: Part): boolean => {
  if (part._tag !== "Reasoning" || sentFields(part.vendorFields) === undefined) return false
  const { fields, wholeElement } = part.vendorFields!
  return wholeElement === true || (typeof fields["signature"] === "string" && fields["signature"] !== "")
}

/** The block of a part; `undefined` for thinking that is not sealed. */
const blockOf = (part: Part): Block | undefined => {
  switch (part._tag) {
    case "Call":
      return callBlock(part)
    case "Result":
      return resultBlock(part)
    case "Reasoning":
      return isSigned(part) ? asSent({ type: "thinking", thinking: part.text }, part.vendorFields) : undefined
    default:
      return contentBlock(part)
  }
}

const isSealed = (block: unknown): block is Block =>
  isRecord(block) && (block["type"] === "thinking" || block["type"] === "redacted_thinking")

/** The sealed thinking that came with the calls of a turn, unless the caller sends it too. */
const sealedThinking = (parts: ReadonlyArray<Part>): ReadonlyArray<Block> => {
  if (parts.some(isSigned)) return []
  for (const part of parts) {
    const blocks = part._tag === "Call" ? part.sealed?.["thinking_blocks"] : undefined
    if (Array.isArray(blocks)) return blocks.filter(isSealed)
  }
  return []
}

/** A message in progress. */
interface Message {
  readonly role: "user" | "assistant" | "system"
  readonly results: Array<Block>
  readonly blocks: Array<Block>
  /** The whole content, if the caller wrote a string. */
  readonly text: string | undefined
  readonly own: Block | undefined
}

/** Blocks of one message: the results first, as the vendor demands, unless the caller ordered them. */
const contentOf = ({ blocks, results, text }: Message): Json =>
  blocks.length === 0 && text !== undefined
    ? text
    : [...results, ...(text === undefined ? [] : [{ type: "text", text }]), ...blocks]

const isSystem = ({ vendorFields }: Turn): boolean => sentFields(vendorFields)?.["role"] === "system"

const roleOf = (turn: Turn): Message["role"] =>
  turn.role === "assistant" ? "assistant" : isSystem(turn) ? "system" : "user"

/**
 * True if the open tool loop has calls that do not begin with sealed thinking. The vendor rejects a request to think then.
 */
export const endsInUnsealedCalls = ({ turns }: Conversation): boolean => {
  const last = turns.findLastIndex(({ role }) => role === "assistant")
  const parts = turns[last]?.parts ?? []
  return parts.some(({ _tag }) => _tag === "Call") &&
    turns[last + 1]?.parts.some(({ _tag }) => _tag === "Result") === true &&
    sealedThinking(parts).length === 0 &&
    !parts.some(isSigned)
}

/**
 * The turn of the open tool loop whose thinking is left out because it has no signature; -1 without one. The vendor then rejects a request to
 * think.
 */
export const unsignedLoop = (conversation: Conversation): number => {
  const last = conversation.turns.findLastIndex(({ role }) => role === "assistant")
  return isInVendorsFormat(conversation) && endsInUnsealedCalls(conversation) &&
      conversation.turns[last]!.parts.some(({ _tag }) => _tag === "Reasoning")
    ? last
    : -1
}

/** A turn that a client of another contract has marked for the server's cache, with the mark at its last part. */
const withPartMarked = (turn: Turn): Turn =>
  turn.vendorFields === undefined || markOf(turn.vendorFields) === undefined ? turn : {
    ...turn,
    parts: turn.parts.map((part, i): Part =>
      i === turn.parts.length - 1 && part.vendorFields === undefined
        ? { ...part, vendorFields: turn.vendorFields }
        : part
    )
  }

/** The messages of a conversation with linked calls, and its system prompt: the system turns before all others. */
export function* messagesOf(conversation: Conversation): Cooperative<Messages> {
  const slice = new Slice()
  const isCallers = isInVendorsFormat(conversation)
  const turns = isCallers ? conversation.turns : conversation.turns.map(withPartMarked)
  const leading = turns.findIndex((turn) => turn.role !== "system" || isSystem(turn))
  const system = turns.slice(0, leading === -1 ? turns.length : leading)
  const messages: Array<Message> = []
  for (const turn of turns.slice(system.length)) {
    const role = roleOf(turn)
    const { name, parts } = turn
    const before = messages.at(-1)
    const isNew = before === undefined || (isCallers ? turn.vendorFields?.continues !== true : before.role !== role)
    const text = isCallers && isNew && name === undefined ? onlyText(parts) : undefined
    const message: Message = isNew
      ? { role, results: [], blocks: [], text, own: sentFields(turn.vendorFields) }
      : before
    // The vendor's models begin with their thinking.
    if (role === "assistant") message.blocks.unshift(...sealedThinking(parts))
    if (name !== undefined && !parts.every(isBlank)) message.blocks.push({ type: "text", text: `${name}:` })
    if (text === undefined) {
      for (const part of parts) {
        if (slice.add(1)) yield slice.end()
        const block = !isCallers && isBlank(part) ? undefined : blockOf(part)
        if (block === undefined) continue
        if (part._tag === "Result" && !isCallers) message.results.push(block)
        else message.blocks.push(block)
      }
    }
    const isEmpty = message.blocks.length === 0 && message.results.length === 0
    if (isNew && (isCallers || !isEmpty)) messages.push(message)
  }
  // The vendor refuses blanks at the end of a turn that the model is to go on with.
  const end = isCallers || messages.at(-1)?.role !== "assistant" ? [] : messages.at(-1)!.blocks
  const text = end.at(-1)?.["text"]
  if (typeof text === "string") end[end.length - 1] = { ...end.at(-1), text: text.trimEnd() }
  const prompt = systemOf(system, isCallers)
  const rendered = messages.map((message): Block => ({
    ...message.own,
    role: message.role,
    content: simple(message, isCallers) ?? contentOf(message)
  }))
  return rendered.length === 0 && prompt !== undefined
    ? { system: undefined, messages: [{ role: "user", content: prompt }] }
    : { system: prompt, messages: rendered }
}

/** A single plain text as a string, in messages that the gateway composes. */
const simple = ({ blocks: [first, ...others], results }: Message, isCallers: boolean): string | undefined => {
  if (isCallers || first === undefined || others.length > 0 || results.length > 0) return undefined
  const { text, type } = first
  return type === "text" && typeof text === "string" && Object.keys(first).length === 2 ? text : undefined
}

const systemOf = (turns: ReadonlyArray<Turn>, isCallers: boolean): Json | undefined => {
  const parts = turns.flatMap(({ parts }) => parts).filter(isContent).filter((part) => isCallers || !isBlank(part))
  if (parts.length === 0) return undefined
  return onlyText(parts) ??
    (isCallers || parts.some(({ _tag, vendorFields }) => _tag !== "Text" || vendorFields !== undefined)
      ? parts.map(contentBlock).filter(isBlock)
      : parts.map((part) => part._tag === "Text" ? part.text : "").join("\n\n"))
}

/** Another instruction at the end of the system prompt. */
export const withInstruction = (system: Json | undefined, instruction: string): Json =>
  system === undefined
    ? instruction
    : typeof system === "string"
    ? `${system}\n\n${instruction}`
    : [...(Array.isArray(system) ? system : []), { type: "text", text: instruction }]
