/**
 * The marks up to which a messages server keeps a prompt, for callers that set none.
 *
 * The last block of the system prompt, of the last user turn and of the user turn before it are marked: so the end of each request is
 * marked in the next one too, and the server finds it within the 20 blocks that it looks back. The vendor accepts four marks. Source:
 * the vendor's guide on prompt caching.
 */
import type { Conversation } from "../../domain/Conversation.ts"
import { estimateCooperatively } from "../../domain/estimateConversation.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { markField } from "./blocks.ts"

/** How requests are marked. */
export interface MarkOptions {
  /** How long the marks ask for. */
  readonly ttl: "5m" | "1h"
  /** Estimated tokens from which a prompt is marked. */
  readonly minTokens: number
  /** The request belongs to a session, so that another turn is likely. */
  readonly hasSession: boolean
}

/** The most marks that the vendor accepts. */
const mostMarks = 4

const listOf = (value: Json | undefined): ReadonlyArray<Json> => Array.isArray(value) ? value : []

const isMarked = (block: Json): boolean =>
  isFields(block) && (Object.hasOwn(block, markField) || listOf(block["content"]).some(isMarked))

/** True if the caller has marked anything, the request as a whole included. */
const hasMarks = (fields: JsonFields): boolean =>
  Object.hasOwn(fields, markField) || listOf(fields["tools"]).some(isMarked) ||
  listOf(fields["system"]).some(isMarked) ||
  listOf(fields["messages"]).some((message) => isFields(message) && listOf(message["content"]).some(isMarked))

/** The places of blocks in the order of the prompt, and what holds blocks of its own. */
const places = ["tools", "system", "messages"] as const

/** The fields with the last marks that the vendor accepts, where a client of another contract has set more. */
export const withinMarks = (fields: JsonFields): JsonFields => {
  let marks = 0
  const walk = (value: Json | undefined, visit: (block: JsonFields) => JsonFields): Json | undefined =>
    !Array.isArray(value) ? value : value.map((block: Json) => {
      if (!isFields(block)) return block
      const content = walk(block["content"], visit)
      return visit(content === undefined ? block : { ...block, content })
    })
  const each = (visit: (block: JsonFields) => JsonFields) =>
    Object.fromEntries(places.flatMap((name) => fields[name] === undefined ? [] : [[name, walk(fields[name], visit)!]]))
  each((block) => {
    if (Object.hasOwn(block, markField)) marks++
    return block
  })
  if (marks <= mostMarks) return fields
  return {
    ...fields,
    ...each((block) => {
      if (!Object.hasOwn(block, markField) || marks-- <= mostMarks) return block
      const { [markField]: _, ...rest } = block as JsonFields & { readonly [markField]?: Json }
      return rest as JsonFields
    })
  }
}

const textBlocks = (content: Json): Json =>
  typeof content === "string" && content.trim() !== "" ? [{ type: "text", text: content }] : content

/** The place of the last block that may be marked: thinking and empty text may not. */
const lastMarkable = (blocks: ReadonlyArray<Json>): number =>
  blocks.findLastIndex((block) =>
    isFields(block) && block["type"] !== "thinking" && block["type"] !== "redacted_thinking" &&
    !(block["type"] === "text" && (typeof block["text"] !== "string" || block["text"].trim() === ""))
  )

/** The blocks with a mark at the last one that may have it; `undefined` without one. */
const markedLast = (blocks: Json | undefined, mark: Json): ReadonlyArray<Json> | undefined => {
  const list = listOf(blocks)
  const place = lastMarkable(list)
  return place === -1
    ? undefined
    : list.map((block, i) => i === place ? { ...block as JsonFields, [markField]: mark } : block)
}

/** User turns that are marked, counted from the end. */
const markedTurns = 2

const isOfUser = (message: Json): message is JsonFields => isFields(message) && message["role"] === "user"

/** The request's fields with their marks. Texts that may carry one are lists of blocks in every turn, so that their bytes stay. */
const withMarks = (fields: JsonFields, ttl: MarkOptions["ttl"]): JsonFields => {
  const mark: Json = ttl === "1h" ? { type: "ephemeral", ttl } : { type: "ephemeral" }
  const system = markedLast(fields["system"] === undefined ? undefined : textBlocks(fields["system"]), mark)
  const tools = system === undefined ? markedLast(fields["tools"], mark) : undefined
  const messages = listOf(fields["messages"]).map((message): Json =>
    isOfUser(message) && message["content"] !== undefined
      ? { ...message, content: textBlocks(message["content"]) }
      : message
  )
  let turns = 0
  for (let i = messages.length - 1; i >= 0 && turns < markedTurns; i--) {
    const message = messages[i]!
    if (!isOfUser(message)) continue
    turns++
    const content = markedLast(message["content"], mark)
    if (content !== undefined) messages[i] = { ...message, content }
  }
  return {
    ...fields,
    messages,
    ...(system === undefined ? {} : { system }),
    ...(tools === undefined ? {} : { tools })
  }
}

/** True if a mark can pay: another turn is likely. */
const mayGoOn = ({ tools, turns, vendorTools = [] }: Conversation, { hasSession }: MarkOptions): boolean =>
  hasSession || tools.length > 0 || vendorTools.length > 0 || turns.some(({ role }) => role === "assistant")

/** The fields of a request, marked if that can pay and its caller has marked nothing. */
export function* marked(
  fields: JsonFields,
  conversation: Conversation,
  options: MarkOptions | undefined
): Cooperative<JsonFields> {
  if (options === undefined || !mayGoOn(conversation, options) || hasMarks(fields)) return fields
  return (yield* estimateCooperatively(conversation)) < options.minTokens ? fields : withMarks(fields, options.ttl)
}
