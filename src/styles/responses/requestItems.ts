/**
 * Collects the items of a request's conversation: from the response that it continues, from `messages` or `input`, and from
 * references.
 */
import { responseOfItem } from "../../contracts/responses/ids.ts"
import { type InputItem, type InputMessage, isReference, type Item } from "../../contracts/responses/items.ts"
import type { ResponseRequest } from "../../contracts/responses/schema.ts"
import type { PlacedItem } from "../../contracts/responses/turns.ts"
import type { BodyVendorFields } from "../../contracts/shared/BodyVendorFields.ts"
import { type MessageContent, messageReasoning } from "../../contracts/shared/chatFamily.ts"
import type { Faults } from "../../contracts/shared/Faults.ts"
import { type ErrorCode, type GatewayError, gatewayError } from "../../domain/GatewayError.ts"
import type { Json, JsonRecord } from "../../domain/json.ts"
import type { Limits } from "../../domain/limits.ts"
import { type Cooperative, eachCooperatively, mapCooperatively, type Slice } from "../../domain/stream/cooperative.ts"
import type { ReadsSummary } from "./compaction/compactedItems.ts"
import type { StoredResponse } from "./store/ResponsesStore.ts"
import { type KnownResponse, StoredItems } from "./storedItems.ts"

/** What the decoder needs beside the request. */
export interface DecodeOptions {
  /** The vendor fields of the body. */
  readonly bodyVendorFields: BodyVendorFields | undefined
  /** True when `input` is accepted beside `messages` (`compat.wide_input_strict_output`). */
  readonly wideInput: boolean
  /** The body as it was parsed, if a server may get it so. */
  readonly sent: JsonRecord | undefined
  /** Every target is such a server, which is asked for the compactions of the request. */
  readonly serverCompacts: boolean
  /** A header of the request that such a server gets too. */
  readonly betas: string | undefined
  /** The stored responses among `storedReferences` of the request, by id. */
  readonly stored: ReadonlyMap<string, StoredResponse>
  readonly limits: Limits
  /** The summary in the seal of a compaction; Without it no gateway's compaction can be read. */
  readonly readSummary: ReadsSummary | undefined
  /** A compaction of the request's conversation that was made meanwhile: its last item. */
  readonly compaction: Item | undefined
  /** The request warms a connection up: no server gets its conversation, which later turns may begin. */
  readonly isWarmUp: boolean
}

/** The items of a request's conversation. */
export interface RequestItems {
  readonly items: ReadonlyArray<PlacedItem>
  /** Characters of the items from stored responses. */
  readonly taken: number
}

type Input = NonNullable<ResponseRequest["input"]>

const isItem = (input: object): input is InputItem => !Array.isArray(input)

/** `input` as a list. */
const inputList = (input: Input): ReadonlyArray<string | InputItem> =>
  typeof input === "object" && !isItem(input) ? input : [input]

/** What a request refers to. */
interface References {
  /** Ids of stored responses. */
  readonly responses: Set<string>
  /** Ids of items that a server made, which do not name their response. */
  readonly items: Set<string>
}

/** The stored responses that a request refers to, and the items of others. */
export function* storedReferences(request: ResponseRequest): Cooperative<References> {
  const responses = new Set<string>()
  const items = new Set<string>()
  if (request.previous_response_id) responses.add(request.previous_response_id)
  yield* eachCooperatively(inputList(request.input ?? []), (item) => {
    if (typeof item === "string" || !isReference(item)) return
    const id = responseOfItem(item.id)
    if (id === undefined) items.add(item.id)
    else responses.add(id)
  })
  return { responses, items }
}

const unknownReference = (code: ErrorCode, param: string, id: string): GatewayError =>
  gatewayError(code, `${param}: "${id.slice(0, 200)}" does not exist or has expired`, { param })

/** The response that the request continues. */
function* previousResponse(
  { previous_response_id: id }: ResponseRequest,
  stored: StoredItems,
  faults: Faults
): Cooperative<KnownResponse | undefined> {
  if (id === undefined || id === null) return undefined
  const previous = yield* stored.response(id)
  if (previous === undefined) faults.add(unknownReference("previous_response_not_found", "previous_response_id", id))
  if (previous?.status === "in_progress") faults.at("previous_response_id", "the response is still in progress")
  return previous
}

/** The content of an assistant's message with its refusal appended. */
const withRefusal = (content: MessageContent, refusal: string | null | undefined): MessageContent => {
  if (!refusal) return content
  const said = typeof content !== "string" ? content : content === "" ? [] : [{ type: "output_text", text: content }]
  return [...said, { type: "refusal", refusal }]
}

const functionCall = (
  call_id: string | null | undefined,
  { arguments: args, name }: NonNullable<InputMessage["tool_calls"]>[number]["function"]
): Item => ({ type: "function_call", call_id: call_id ?? null, name, arguments: args ?? "{}" })

const assistantItems = (message: InputMessage): ReadonlyArray<Item> => {
  const { content, function_call, name, refusal, tool_calls } = message
  const reasoning = messageReasoning(message)
  const named = name ? { name } : {}
  const items: Array<Item> = []
  if (reasoning !== "") {
    items.push({ type: "reasoning", summary: [{ type: "summary_text", text: reasoning }] })
  }
  const said = withRefusal(content ?? "", refusal)
  if (said.length > 0) items.push({ type: "message", role: "assistant", ...named, content: said })
  for (const call of tool_calls ?? []) items.push(functionCall(call.id, call.function))
  // A message with both fields repeats the same call.
  if (function_call?.name && !tool_calls?.length) items.push(functionCall(null, function_call))
  return items
}

/** A message of the chat-completions format as items. */
const messageItems = (message: InputMessage): ReadonlyArray<Item> => {
  const { content, name, role, tool_call_id } = message
  switch (role) {
    case "tool":
    case "function": {
      const ids = { call_id: tool_call_id ?? null, name: name ?? null }
      return [{ type: "function_call_output", ...ids, output: content ?? "" }]
    }
    case "assistant":
      return assistantItems(message)
    default:
      return [{ type: "message", role, ...(name ? { name } : {}), content: content ?? "" }]
  }
}

/** The elements of `input` in the body as it was parsed. */
const inputAsSent = (own: JsonRecord | undefined): ReadonlyArray<Json> => {
  const input = own?.["input"] as Json | undefined
  return input === undefined ? [] : Array.isArray(input) ? input : [input]
}

/** All items in order, references replaced by the items they name. Stops at a reference that cannot be replaced. */
function* placedItems(
  request: ResponseRequest,
  stored: StoredItems,
  faults: Faults,
  slice: Slice,
  own: JsonRecord | undefined
): Cooperative<ReadonlyArray<PlacedItem>> {
  const { input, messages } = request
  const items: Array<PlacedItem> = []
  const previous = yield* previousResponse(request, stored, faults)
  for (const { item, sent } of previous?.items ?? []) {
    const field = "previous_response_id"
    if (slice.add(1)) yield slice.end()
    if (!(yield* stored.take(item, field, faults))) return items
    items.push({ item, field, sent })
  }
  for (const [i, message] of (messages ?? []).entries()) {
    for (const item of messageItems(message)) {
      if (slice.add(1)) yield slice.end()
      items.push({ item, field: `messages[${i}]`, sent: undefined })
    }
  }
  if (input === undefined || input === null) return items
  const sent = inputList(input)
  const written = inputAsSent(own)
  for (const [i, item] of sent.entries()) {
    if (slice.add(1)) yield slice.end()
    const field = Array.isArray(input) ? `input[${i}]` : "input"
    if (typeof item === "string") {
      items.push({ item: { type: "message", role: "user", content: item }, field, sent: undefined })
    } else if (isReference(item)) {
      const found = yield* stored.find(item.id, previous)
      if (found === undefined) {
        faults.add(unknownReference("unknown_reference", `${field}.id`, item.id))
        return items
      }
      if (!(yield* stored.take(found.item, `${field}.id`, faults))) return items
      items.push({ ...found, field })
    } else {
      const own = written[i]
      items.push({ item, field, sent: own })
    }
  }
  return items
}

/**
 * Collects the items of a request's conversation. A request has either `input` or `messages`, or continues a response without items of its
 * own. Only a warm-up may have no items at all.
 */
export function* requestItems(
  request: ResponseRequest,
  { isWarmUp, limits, sent, stored: responses, wideInput }: DecodeOptions,
  faults: Faults,
  slice: Slice
): Cooperative<RequestItems> {
  const { input, messages } = request
  const hasInput = input !== undefined && input !== null
  if (hasInput && !wideInput) {
    faults.at("input", "is not enabled on this gateway; send messages")
  }
  if (hasInput && messages) faults.at("messages", "send either input or messages")
  if (!hasInput && !messages && !isWarmUp && !request.previous_response_id) {
    if (request.prompt) faults.atElsewhere("input", "is required, or messages")
    else if (wideInput) faults.at("input", "is required, or messages")
    else faults.at("messages", "is required")
  }
  const stored = new StoredItems(responses, limits, slice)
  const items = yield* placedItems(request, stored, faults, slice, sent)
  if (items.length === 0 && !isWarmUp) faults.at("input", "must not be empty")
  if (stored.taken > 0) yield* stored.checkCount(yield* mapCooperatively(slice, items, ({ item }) => item), faults)
  return { items, taken: stored.taken }
}
