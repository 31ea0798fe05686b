/**
 * Stored responses (spec "Stored response"): in memory, each readable by the caller that created it until its time-to-live
 * after the last change is over.
 *
 * Entries stand in the order of their last change, and all have the same time-to-live, so that what has expired and what
 * goes first when the store is full always stand at the front: every operation is O(1) apart from what it drops.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { Json } from "../domain/Conversation.ts"
import { jsonSize } from "./jsonSize.ts"

/** What is kept of a response. */
export interface StoredResponse {
  readonly id: string
  /** The response object as JSON text, ready to be sent. */
  readonly body: string
  /** The items of the conversation before the response's own output, to list and to continue them. */
  readonly items: ReadonlyArray<Json>
}

/** Bounds of the store, over all callers. */
export interface StoreLimits {
  readonly count: number
  readonly bytes: number
}

/** A response that is still being made. */
export interface OpenResponse {
  /**
   * Stores the response's final object. Does nothing when the response was removed meanwhile. Synchronous, so that a
   * response is final in the store before the frame that says so leaves.
   */
  readonly settleUnsafe: (body: string) => void
}

interface Entry {
  readonly owner: string
  readonly items: ReadonlyArray<Json>
  readonly itemsSize: number
  body: string
  /** Milliseconds of the clock. */
  changedAt: number
  settled: boolean
  removed: boolean
}

const sizeOf = (entry: Entry): number => entry.itemsSize + 2 * entry.body.length

/** How often what has expired is let go of where no request does. */
const sweepEvery = "30 seconds"

interface ResponsesStoreShape {
  /** The response with this id, if this owner created it and it has not expired. */
  readonly get: (owner: string, id: string) => Effect.Effect<StoredResponse | undefined>
  /** Stores a response that is final. */
  readonly put: (owner: string, response: StoredResponse) => Effect.Effect<void>
  /**
   * Stores a response that is still being made; it does not expire before it is settled. Synchronous, so that it is there
   * before the frame that tells its id leaves.
   */
  readonly openUnsafe: (owner: string, response: StoredResponse) => OpenResponse
  /** Removes a response; false when this owner has none with this id. */
  readonly remove: (owner: string, id: string) => Effect.Effect<boolean>
  /** What is held at the moment. */
  readonly held: Effect.Effect<StoreLimits>
}

/** The stored responses of all callers. */
export class ResponsesStore extends Context.Service<ResponsesStore, ResponsesStoreShape>()(
  "model-gateway/responses-store/ResponsesStore"
) {
  static readonly make = Effect.fnUntraced(function*(limits: StoreLimits) {
    const config = yield* ConfigStore
    const clock = yield* Clock.Clock
    const entries = new Map<string, Entry>()
    let bytes = 0

    const drop = (id: string, entry: Entry) => {
      entries.delete(id)
      bytes -= sizeOf(entry)
    }
    /** Lets go of what has expired. */
    const sweep = () => {
      const now = clock.currentTimeMillisUnsafe()
      const ttl = config.unsafeCurrent().responses.store_ttl_seconds * 1000
      for (const [id, entry] of entries) {
        if (now - entry.changedAt < ttl) return
        if (entry.settled) {
          drop(id, entry)
        } else {
          // It is still changing: it goes to the end, where what has just changed stands.
          entries.delete(id)
          entry.changedAt = now
          entries.set(id, entry)
        }
      }
    }
    const insert = (id: string, entry: Entry) => {
      entry.changedAt = clock.currentTimeMillisUnsafe()
      entries.set(id, entry)
      bytes += sizeOf(entry)
      sweep()
      for (const [oldest, dropped] of entries) {
        if (entries.size <= limits.count && bytes <= limits.bytes) return
        drop(oldest, dropped)
      }
    }
    const add = (owner: string, response: StoredResponse, settled: boolean): Entry => {
      const entry: Entry = {
        owner,
        items: response.items,
        itemsSize: response.items.reduce<number>((size, item) => size + jsonSize(item), 0),
        body: response.body,
        changedAt: 0,
        settled,
        removed: false
      }
      insert(response.id, entry)
      return entry
    }
    const find = (owner: string, id: string): Entry | undefined => {
      sweep()
      const entry = entries.get(id)
      return entry?.owner === owner ? entry : undefined
    }

    yield* Effect.forkScoped(Effect.repeat(Effect.sync(sweep), Schedule.spaced(sweepEvery)))

    return ResponsesStore.of({
      get: (owner, id) =>
        Effect.sync(() => {
          const entry = find(owner, id)
          return entry === undefined ? undefined : { id, body: entry.body, items: entry.items }
        }),
      put: (owner, response) =>
        Effect.sync(() => {
          add(owner, response, true)
        }),
      openUnsafe(owner, response) {
        const { id } = response
        const entry = add(owner, response, false)
        return {
          settleUnsafe(body) {
            if (entry.removed) return
            if (entries.get(id) === entry) drop(id, entry)
            entry.body = body
            entry.settled = true
            insert(id, entry)
          }
        }
      },
      remove: (owner, id) =>
        Effect.sync(() => {
          const entry = find(owner, id)
          if (entry === undefined) return false
          entry.removed = true
          drop(id, entry)
          return true
        }),
      held: Effect.sync(() => ({ count: entries.size, bytes }))
    })
  })

  /** A store with the given bounds. */
  static readonly layerLimits = (limits: StoreLimits): Layer.Layer<ResponsesStore, never, ConfigStore> =>
    Layer.effect(ResponsesStore, ResponsesStore.make(limits))

  /** 10,000 responses or 128 MiB, whichever is less. */
  static readonly layer: Layer.Layer<ResponsesStore, never, ConfigStore> = ResponsesStore.layerLimits({
    count: 10_000,
    bytes: 128 * 1024 * 1024
  })
}
