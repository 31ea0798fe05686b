/** The items of a reply that have begun and not ended. */
import type { JsonRecord } from "../../domain/json.ts"
import type { WholeCharacters } from "../../domain/stream/text.ts"

/** An item in progress. */
export interface Item {
  readonly type: string
  /** The index of a call among the calls; -1 for other items. */
  readonly call: number
  /** Text, thinking or arguments of it were emitted. */
  hasContent: boolean
  /** The thinking itself was emitted, so that its summary is not. */
  hasThinking: boolean
  /** The summary's part whose text came last. */
  part: unknown
  /** Annotations that were emitted. */
  annotations: number
  /** Its words by kind; a piece may end within a character. */
  readonly characters: WholeCharacters
}

/** The most items that are followed at the same time. A server has few open. */
export const mostOpen = 1_024

/** The items in progress, at most `mostOpen`, by their places in the reply or their ids. */
export class OpenItems {
  readonly #items = new Map<unknown, Item>()

  get(key: unknown): Item | undefined {
    return this.#items.get(key)
  }

  open(key: unknown, item: Item): void {
    if (this.#items.size < mostOpen) this.#items.set(key, item)
  }

  delete(key: unknown): void {
    this.#items.delete(key)
  }

  /** The item that an event is about. */
  at({ item_id, output_index }: JsonRecord): Item | undefined {
    return this.#items.get(output_index ?? item_id)
  }

  /** The key of an item that ends: the one of its beginning, or of its pieces. */
  keyOf({ output_index }: JsonRecord, { id, type }: JsonRecord): unknown {
    const keys = [output_index ?? id, id, undefined]
    return keys[Math.max(0, keys.findIndex((key) => this.#items.get(key)?.type === type))]
  }
}
