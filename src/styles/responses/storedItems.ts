/**
 * The items that a request takes from stored responses, by continuing one or by references. They count against the limits of
 * a body: a short reference stands for an item of any size, and a request may repeat it.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { responseOfItem } from "../../contracts/responses/ids.ts"
import { Item } from "../../contracts/responses/items.ts"
import type { Faults } from "../../contracts/shared/Faults.ts"
import { request } from "../../contracts/shared/requestSchema.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import type { Json } from "../../domain/json.ts"
import type { Limits } from "../../domain/limits.ts"
import { type Cooperative, eachCooperatively, mapCooperatively, type Slice } from "../../domain/stream/cooperative.ts"
import { itemCounter } from "../../http/bodyLimits.ts"
import { planDecoder } from "../../http/planDecoder.ts"
import { asText, jsonSizeSliced } from "./store/jsonSize.ts"
import type { StoredResponse } from "./store/ResponsesStore.ts"

/** A stored response. `items` are the items of its conversation, then those of its output. */
export interface KnownResponse {
  readonly status: string
  readonly items: ReadonlyArray<StoredItem>
  readonly byId: ReadonlyMap<string, StoredItem>
}

/** An item of a stored response, and as it is stored. */
export interface StoredItem {
  readonly item: Item
  readonly sent: Json
}

const decodeItems = planDecoder(Schema.Struct({ items: Schema.Array(Item) }))

const decodeOutput = planDecoder(Schema.Struct({ output: Schema.Array(Item) }))
const decodeItem = Schema.decodeUnknownResult(Item)

/** Stands for an item of a server that is of a known type and lacks what the type needs. */
const unreadable = Schema.decodeUnknownSync(Item)({ type: "unreadable_item" })

/** The items of an output. A server may have written them. */
function* outputItems(output: ReadonlyArray<Json>, slice: Slice): Cooperative<ReadonlyArray<Item>> {
  const decoded = yield* decodeOutput({ output })
  return Result.isSuccess(decoded)
    ? decoded.success.output
    : yield* mapCooperatively(slice, output, (item) => Result.getOrElse(decodeItem(item), () => unreadable))
}

/** The items before a stored response's output. This style wrote them, so they always decode. */
export function* inputItems({ items }: StoredResponse): Cooperative<ReadonlyArray<Item>> {
  return Result.getOrThrow(yield* decodeItems({ items })).items
}

const { count: countItems } = itemCounter(
  Schema.Struct({ input: Schema.Array(Item).annotate(request({ counted: "turns" })) })
)

/** Stored responses as one request sees them. Bounded by the references of the request. */
export class StoredItems {
  /** Characters of the items taken so far, as JSON; an item that is taken twice counts twice. */
  taken = 0
  readonly #stored: ReadonlyMap<string, StoredResponse>
  readonly #limits: Limits
  readonly #slice: Slice
  readonly #known = new Map<string, KnownResponse>()
  readonly #sizes = new Map<Item, number>()

  constructor(stored: ReadonlyMap<string, StoredResponse>, limits: Limits, slice: Slice) {
    this.#stored = stored
    this.#limits = limits
    this.#slice = slice
  }

  /** The stored response with this id, decoded once per request. */
  *response(id: string): Cooperative<KnownResponse | undefined> {
    const stored = this.#stored.get(id)
    const known = this.#known.get(id)
    if (stored === undefined || known !== undefined) return known
    const { output, status } = JSON.parse(stored.body) as {
      readonly output: ReadonlyArray<Json>
      readonly status: string
    }
    const sent = stored.items.concat(output)
    const decoded = (yield* inputItems(stored)).concat(yield* outputItems(output, this.#slice))
    const items = yield* mapCooperatively(this.#slice, decoded, (item, i): StoredItem => ({ item, sent: sent[i]! }))
    const byId = new Map<string, StoredItem>()
    yield* eachCooperatively(items, (stored) => {
      const { item } = stored
      if ("id" in item && typeof item.id === "string") byId.set(item.id, stored)
    })
    const response = { status, items, byId }
    this.#known.set(id, response)
    return response
  }

  /**
   * The item with this id: of the response that the request continues, else of the response that the id belongs to. The id of a server's item
   * does not name its response.
   */
  *find(id: string, previous: KnownResponse | undefined): Cooperative<StoredItem | undefined> {
    const owner = responseOfItem(id)
    const found = previous?.byId.get(id) ??
      (owner === undefined ? undefined : (yield* this.response(owner))?.byId.get(id))
    if (found !== undefined || owner !== undefined) return found
    for (const stored of this.#stored.keys()) {
      const item = (yield* this.response(stored))?.byId.get(id)
      if (item !== undefined) return item
    }
    return undefined
  }

  /** Takes an item. Returns false, and notes a fault at `field`, when the items are larger than a body may be. */
  *take(item: Item, field: string, faults: Faults): Cooperative<boolean> {
    const size = this.#sizes.get(item) ?? (yield* jsonSizeSliced(item as Json, asText, this.#slice))
    this.#sizes.set(item, size)
    this.taken += size
    const limit = this.#limits.body_bytes
    if (this.taken <= limit) return true
    const message = `${field}: what the request takes from stored responses is larger than the limit of ${limit} bytes`
    faults.add(gatewayError("request_too_large", message, { param: field }))
    return false
  }

  /** Notes a fault when a conversation with taken items has more items or parts than a body may have. */
  *checkCount(items: ReadonlyArray<Item>, faults: Faults): Cooperative<void> {
    const tooMany = yield* countItems({ input: items }, this.#limits)
    if (tooMany === undefined) return
    faults.add(invalidRequest(`${tooMany.message}, with what is taken from stored responses`, "input"))
  }
}
