/**
 * Stored responses in memory, until the time-to-live after their last change ends.
 *
 * Entries are ordered by their last change and share one time-to-live, so expired entries are at the front. A full store
 * removes the oldest entry of the largest share, so that no caller can evict the responses of others. Each operation takes
 * O(log n) in the number of shares, plus the entries that it removes. Times are monotonic.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { ConfigStore } from "../../../config/ConfigStore.ts"
import type { Json } from "../../../domain/json.ts"
import type { Maker } from "../../../domain/makers.ts"
import { monotonicMillis } from "../../../domain/time.ts"
import { Heap, type HeapEntry, heapEntry } from "../../../placement/heap.ts"
import { jsonSize } from "./jsonSize.ts"
import { ResponsesStore, type StoredResponse, type StoreLimits } from "./ResponsesStore.ts"

/** The entries of one owner or of several owners that share a name, oldest change first. */
class Share {
  readonly name: string
  readonly entries = new Map<string, Entry>()
  bytes = 0
  /** Positions in the heaps of all shares, the largest first. */
  readonly byCount: HeapEntry<Share> = heapEntry(this)
  readonly byBytes: HeapEntry<Share> = heapEntry(this)

  constructor(name: string) {
    this.name = name
  }
}

interface Entry {
  readonly share: string
  readonly items: ReadonlyArray<Json>
  readonly itemsSize: number
  body: string
  heldBy: Maker | undefined
  /** Monotonic milliseconds. */
  changedAt: number
  isFinal: boolean
  removed: boolean
}

const sizeOf = (entry: Entry): number => entry.itemsSize + 2 * entry.body.length

/** How often expired entries are removed while no request removes them. */
const sweepEvery = "30 seconds"

const makeResponses = Effect.fnUntraced(function*(limits: () => StoreLimits) {
  const config = yield* ConfigStore
  const clock = yield* Clock.Clock
  const entries = new Map<string, Entry>()
  const shares = new Map<string, Share>()
  const byCount = new Heap<Share>()
  const byBytes = new Heap<Share>()
  let bytes = 0

  const place = (share: Share) => {
    if (share.entries.size === 0) {
      shares.delete(share.name)
      byCount.remove(share.byCount)
      byBytes.remove(share.byBytes)
    } else {
      byCount.put(share.byCount, -share.entries.size)
      byBytes.put(share.byBytes, -share.bytes)
    }
  }
  const drop = (id: string, entry: Entry) => {
    const size = sizeOf(entry)
    entries.delete(id)
    bytes -= size
    const share = shares.get(entry.share)!
    share.entries.delete(id)
    share.bytes -= size
    place(share)
  }
  /** Adds an entry behind all others: it changed last. */
  const keep = (id: string, entry: Entry) => {
    const size = sizeOf(entry)
    entry.changedAt = monotonicMillis(clock)
    entries.set(id, entry)
    bytes += size
    const share = shares.get(entry.share) ?? new Share(entry.share)
    shares.set(entry.share, share)
    share.entries.set(id, entry)
    share.bytes += size
    place(share)
  }
  /** Removes expired entries. */
  const sweep = () => {
    const now = monotonicMillis(clock)
    const ttl = config.now().responses.store_ttl_seconds * 1000
    for (const [id, entry] of entries) {
      if (now - entry.changedAt < ttl) return
      drop(id, entry)
      // A response in progress does not expire: it moves to the end.
      if (!entry.isFinal) keep(id, entry)
    }
  }
  const insert = (id: string, entry: Entry) => {
    keep(id, entry)
    sweep()
    const most = limits()
    for (;;) {
      const largest = bytes > most.bytes ? byBytes.peek() : entries.size > most.count ? byCount.peek() : undefined
      if (largest === undefined) return
      for (const [oldest, dropped] of largest.value.entries) {
        drop(oldest, dropped)
        break
      }
    }
  }
  /** Ids of servers are unique for their callers alone. */
  const keyOf = (owner: string, id: string): string => `${id}\n${owner}`
  const add = (owner: string, response: StoredResponse, share: string, isFinal: boolean): Entry => {
    const entry: Entry = {
      share,
      items: response.items,
      itemsSize: response.itemsSize ?? jsonSize(response.items),
      body: response.body,
      heldBy: response.heldBy,
      changedAt: 0,
      isFinal,
      removed: false
    }
    const key = keyOf(owner, response.id)
    const before = entries.get(key)
    if (before !== undefined) drop(key, before)
    insert(key, entry)
    return entry
  }
  const find = (owner: string, id: string): Entry | undefined => {
    sweep()
    return entries.get(keyOf(owner, id))
  }

  yield* Effect.forkScoped(Effect.repeat(Effect.sync(sweep), Schedule.spaced(sweepEvery)))

  return ResponsesStore.of({
    get: (owner, id) =>
      Effect.sync(() => {
        const entry = find(owner, id)
        if (entry === undefined) return undefined
        const { body, heldBy, items } = entry
        return { id, body, items, ...(heldBy === undefined ? {} : { heldBy }) }
      }),
    put: (owner, response, share = owner) =>
      Effect.sync(() => {
        add(owner, response, share, true)
      }),
    openUnsafe(owner, response, share = owner) {
      const id = keyOf(owner, response.id)
      const entry = add(owner, response, share, false)
      return {
        finalizeUnsafe(body, heldBy) {
          if (entry.removed) return
          if (entries.get(id) === entry) drop(id, entry)
          entry.body = body
          entry.heldBy = heldBy
          entry.isFinal = true
          insert(id, entry)
        },
        written: () => undefined
      }
    },
    remove: (owner, id) =>
      Effect.sync(() => {
        const entry = find(owner, id)
        if (entry === undefined) return false
        entry.removed = true
        drop(keyOf(owner, id), entry)
        return true
      }),
    held: Effect.sync(() => ({ count: entries.size, bytes }))
  })
})

/** A store with the given limits. */
export const layerResponsesOf = (limits: StoreLimits): Layer.Layer<ResponsesStore, never, ConfigStore> =>
  Layer.effect(ResponsesStore, makeResponses(() => limits))

/** A store with the configured limits. */
export const layerResponses: Layer.Layer<ResponsesStore, never, ConfigStore> = Layer.effect(
  ResponsesStore,
  Effect.flatMap(ConfigStore, (config) =>
    makeResponses(() => {
      const { stored_bytes, stored_responses } = config.now().limits
      return { count: stored_responses, bytes: stored_bytes }
    }))
)
