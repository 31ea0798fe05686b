/**
 * The items that a request's conversation is made of, in whichever form they come: `input`, `messages`, the response that it
 * continues, references.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { isRecord } from "../../domain/json.ts"
import type { Limits } from "../../domain/limits.ts"
import { eachSliced, mapSliced, type Slice, type Sliced } from "../../domain/stream/slices.ts"
import { decodePieces, each } from "../../http/decodePieces.ts"
import type { Faults } from "../../http/Faults.ts"
import type { ResponseRequest } from "./Api.ts"
import { responseOfItem } from "./ids.ts"
import type { InputContent, InputItem, InputMessage } from "./items.ts"
import { isReference, Item } from "./items.ts"
import { itemPieces } from "./outline.ts"
import type { StoredResponse } from "./store/ResponsesStore.ts"
import { TakenItems } from "./takenItems.ts"
import type { PlacedItem } from "./turns.ts"

/** What a decoder needs to know beside the request. */
export interface DecodeOptions {
  /** `input` is accepted, not only `messages` (`compat.wide_input_strict_output`). */
  readonly wideInput: boolean
  /** Stored responses that the request refers to, as far as they are there. */
  readonly stored: ReadonlyMap<string, StoredResponse>
  readonly limits: Limits
}

/** The items of a request's conversation. */
export interface RequestItems {
  readonly items: ReadonlyArray<PlacedItem>
  /** Characters of those that stored responses brought. */
  readonly taken: number
}

/** `input` as a list. */
const listed = (input: Exclude<ResponseRequest["input"], null | undefined>): ReadonlyArray<string | InputItem> =>
  typeof input === "object" && !isItem(input) ? input : [input]

const isItem = (input: object): input is InputItem => !Array.isArray(input)

/** Ids of the stored responses that a request refers to. */
export function* storedReferences(request: ResponseRequest): Sliced<ReadonlySet<string>> {
  const ids = new Set<string>()
  if (request.previous_response_id) ids.add(request.previous_response_id)
  yield* eachSliced(listed(request.input ?? []), (item) => {
    if (typeof item === "string" || !isReference(item)) return
    const id = responseOfItem(item.id)
    if (id !== undefined) ids.add(id)
  })
  return ids
}

/** What of a stored response is needed to go on from it: its conversation before it, and its own output. */
const Stored = Schema.Struct({ items: Schema.Array(Item), status: Schema.String, output: Schema.Array(Item) })

const decodeStored = decodePieces(Stored, { items: each(Item, itemPieces), output: each(Item, itemPieces) })

function* storedParts({ body, items }: StoredResponse): Sliced<typeof Stored.Type> {
  const response: unknown = JSON.parse(body)
  // What is stored was written by this style: it always decodes.
  return Result.getOrThrow(yield* decodeStored(isRecord(response) ? { ...response, items } : response))
}

interface KnownResponse {
  readonly status: string
  /** The items of its conversation, its own output last. */
  readonly items: ReadonlyArray<Item>
  readonly byId: ReadonlyMap<string, Item>
}

const idOf = (item: Item): string | undefined => "id" in item && typeof item.id === "string" ? item.id : undefined

function* indexed(items: ReadonlyArray<Item>): Sliced<ReadonlyMap<string, Item>> {
  const byId = new Map<string, Item>()
  yield* eachSliced(items, (item) => {
    const id = idOf(item)
    if (id !== undefined) byId.set(id, item)
  })
  return byId
}

/** Looks stored responses up, each decoded once. */
const makeLookUp = (stored: ReadonlyMap<string, StoredResponse>) => {
  const known = new Map<string, KnownResponse>()
  return function*(id: string): Sliced<KnownResponse | undefined> {
    const found = stored.get(id)
    const decoded = known.get(id)
    if (found === undefined || decoded !== undefined) return decoded
    const { items: before, output, status } = yield* storedParts(found)
    const items = before.concat(output)
    const response = { status, items, byId: yield* indexed(items) }
    known.set(id, response)
    return response
  }
}

type LookUp = ReturnType<typeof makeLookUp>

const unknownReference = (param: string, id: string): GatewayError =>
  gatewayError("unknown_reference", `${param}: "${id.slice(0, 200)}" is not there, or no longer`, { param })

/** The response that the request continues. */
function* previousResponse(
  request: ResponseRequest,
  lookUp: LookUp,
  faults: Faults
): Sliced<KnownResponse | undefined> {
  const id = request.previous_response_id
  if (id === undefined || id === null) return undefined
  const previous = yield* lookUp(id)
  if (previous === undefined) faults.add(unknownReference("previous_response_id", id))
  if (previous?.status === "in_progress") faults.at("previous_response_id", "the response is still in progress")
  return previous
}

/** What an assistant's message says, and then what it refuses. */
const withRefusal = (content: InputContent, refusal: string | null | undefined): InputContent => {
  if (!refusal) return content
  const said = typeof content !== "string" ? content : content === "" ? [] : [{ type: "output_text", text: content }]
  return [...said, { type: "refusal", refusal }]
}

/** A chat-completions message as items. */
const messageItems = (message: InputMessage): ReadonlyArray<Item> => {
  const content: InputContent = message.content ?? ""
  switch (message.role) {
    case "tool":
    case "function":
      return [{
        type: "function_call_output",
        call_id: message.tool_call_id ?? null,
        name: message.name ?? null,
        output: content
      }]
    case "assistant": {
      const items: Array<Item> = []
      if (message.reasoning_content) {
        items.push({ type: "reasoning", summary: [{ type: "summary_text", text: message.reasoning_content }] })
      }
      const said = withRefusal(content, message.refusal)
      if (said.length > 0) items.push({ type: "message", role: "assistant", content: said })
      for (const call of message.tool_calls ?? []) {
        items.push({
          type: "function_call",
          call_id: call.id ?? null,
          name: call.function.name,
          arguments: call.function.arguments ?? "{}"
        })
      }
      const call = message.function_call
      // Who writes both says the same twice.
      if (call?.name && !message.tool_calls?.length) {
        items.push({ type: "function_call", call_id: null, name: call.name, arguments: call.arguments ?? "{}" })
      }
      return items
    }
    default:
      return [{ type: "message", role: message.role, content }]
  }
}

function* resolveReference(
  id: string,
  previous: KnownResponse | undefined,
  lookUp: LookUp
): Sliced<Item | undefined> {
  const owner = responseOfItem(id)
  return previous?.byId.get(id) ?? (owner === undefined ? undefined : (yield* lookUp(owner))?.byId.get(id))
}

/** The items of the response that is continued and those of the request itself, references replaced by what they refer to. */
function* placedItems(
  { input, messages }: ResponseRequest,
  previous: KnownResponse | undefined,
  lookUp: LookUp,
  taken: TakenItems,
  faults: Faults,
  slice: Slice
): Sliced<ReadonlyArray<PlacedItem>> {
  const items: Array<PlacedItem> = []
  for (const item of previous?.items ?? []) {
    const field = "previous_response_id"
    if (slice.add(1)) yield slice.end()
    const tooLarge = yield* taken.add(item, field)
    if (tooLarge !== undefined) {
      faults.add(tooLarge)
      return items
    }
    items.push({ item, field })
  }
  for (const [i, message] of (messages ?? []).entries()) {
    for (const item of messageItems(message)) {
      if (slice.add(1)) yield slice.end()
      items.push({ item, field: `messages[${i}]` })
    }
  }
  if (input === undefined || input === null) return items
  const own = listed(input)
  if (own.length === 0) faults.at("input", "must not be empty")
  for (const [i, item] of own.entries()) {
    if (slice.add(1)) yield slice.end()
    const field = Array.isArray(input) ? `input[${i}]` : "input"
    if (typeof item === "string") {
      items.push({ item: { type: "message", role: "user", content: item }, field })
    } else if (isReference(item)) {
      const found = yield* resolveReference(item.id, previous, lookUp)
      const fault = found === undefined
        ? unknownReference(`${field}.id`, item.id)
        : yield* taken.add(found, `${field}.id`)
      if (fault !== undefined) {
        faults.add(fault)
        return items
      }
      if (found !== undefined) items.push({ item: found, field })
    } else {
      items.push({ item, field })
    }
  }
  return items
}

/**
 * The items of a request's conversation: those of the response that it continues, then its own, which come as `input` or as
 * `messages`. References are replaced by what they refer to.
 */
export function* requestItems(
  request: ResponseRequest,
  options: DecodeOptions,
  faults: Faults,
  slice: Slice
): Sliced<RequestItems> {
  const { input, messages } = request
  const hasInput = input !== undefined && input !== null
  if (hasInput && !options.wideInput) {
    faults.at("input", "is not accepted while compat.wide_input_strict_output is off; send messages")
  }
  if (hasInput && messages) faults.at("messages", "input and messages exclude each other")
  if (!hasInput && !messages) {
    faults.at(
      options.wideInput ? "input" : "messages",
      options.wideInput ? "is required, or messages" : "is required"
    )
  }
  const lookUp = makeLookUp(options.stored)
  const previous = yield* previousResponse(request, lookUp, faults)
  const taken = new TakenItems(options.limits, slice)
  const items = yield* placedItems(request, previous, lookUp, taken, faults, slice)
  if (taken.chars === 0) return { items, taken: 0 }
  const tooMany = yield* taken.fault(yield* mapSliced(slice, items, ({ item }) => item))
  if (tooMany !== undefined) faults.add(tooMany)
  return { items, taken: taken.chars }
}
