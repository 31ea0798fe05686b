/**
 * What a request takes from stored responses, held to the limits of what it says itself: a reference of few characters stands
 * for an item of any size, and any number of them for the same one.
 */
import type { Json } from "../../domain/Conversation.ts"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { gatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import type { Limits } from "../../domain/limits.ts"
import type { Slice, Sliced } from "../../domain/stream/slices.ts"
import { itemCounter } from "../../http/itemLimits.ts"
import type { Item } from "./items.ts"
import { asText, jsonSizeSliced } from "./store/jsonSize.ts"

const countItems = itemCounter({ turns: ["input"], stops: "" })

/** The items that one request takes from stored responses. */
export class TakenItems {
  /** Characters of their JSON, those of one that is taken twice counted twice. */
  chars = 0
  readonly #known = new Map<Item, number>()
  readonly #limits: Limits
  readonly #slice: Slice

  constructor(limits: Limits, slice: Slice) {
    this.#limits = limits
    this.#slice = slice
  }

  /** Takes one more; the error where they are more than a body may have. `field` is what leads to it. */
  *add(item: Item, field: string): Sliced<GatewayError | undefined> {
    const chars = this.#known.get(item) ?? (yield* jsonSizeSliced(item as Json, asText, this.#slice))
    this.#known.set(item, chars)
    this.chars += chars
    const most = this.#limits.body_bytes
    return this.chars <= most ? undefined : gatewayError(
      "request_too_large",
      `${field}: what the request takes from stored responses is larger than the limit of ${most} bytes`,
      { param: field }
    )
  }

  /** The error of a conversation, with what was taken, that has more items or parts than a body may have. */
  *fault(items: ReadonlyArray<Item>): Sliced<GatewayError | undefined> {
    const tooMany = yield* countItems({ input: items }, this.#limits)
    return tooMany === undefined
      ? undefined
      : invalidRequest(`${tooMany.message}, with what is taken from stored responses`, "input")
  }
}
