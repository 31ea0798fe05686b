/**
 * What every place for usage does.
 */
import type * as Effect from "effect/Effect"
import type { KeyCounters } from "./Batch.ts"
import type { UsageEntry } from "./UsageEntry.ts"
import type { UsageQuery, UsageReport } from "./UsageQuery.ts"

/** How usage is kept at the moment. */
export interface StoreStatus {
  readonly kind: "sqlite" | "memory" | "redis" | "off"
  /** Whether it outlives the process. */
  readonly persistent: boolean
  /** Why it is in memory, or what is wrong now. */
  readonly detail: string | null
}

/** A place for usage. None of its methods fails: what cannot be written is kept in memory, and `status` says so. */
export interface UsageStoreShape {
  /** Adds a request that is over. Costs no more than adding up numbers. */
  readonly add: (entry: UsageEntry) => void
  /** Answers a question, with what is not written yet. */
  readonly query: (query: UsageQuery) => Effect.Effect<UsageReport>
  /**
   * What a key has used of the windows that `now` (milliseconds) is in, for limits that this process counts alone: nothing
   * where nodes count them together.
   */
  readonly counters: (key: string, now: number) => Effect.Effect<KeyCounters>
  /** Makes days of old hours, and removes old days. The layers do so every hour. */
  readonly tidy: Effect.Effect<void>
  readonly status: Effect.Effect<StoreStatus>
}

/** How a store is run. */
export interface UsageStoreOptions {
  /** Days that the history is kept, asked each time that it is tidied; 400 unless given. */
  readonly keepDays?: (() => number) | undefined
}
