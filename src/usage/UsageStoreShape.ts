/**
 * What every usage store does, and what the stores share.
 */
import type * as Effect from "effect/Effect"
import type { AccountState, KeyCounters } from "./Batch.ts"
import type { ChangeHistory } from "./changes.ts"
import type { UsageEntry } from "./UsageEntry.ts"
import type { UsageQuery, UsageReport } from "./UsageQuery.ts"

/** How usage is kept at present. */
export interface StoreStatus {
  readonly kind: "sqlite" | "memory" | "redis" | "off"
  /** Whether usage outlives the process. */
  readonly persistent: boolean
  /** Why usage is in memory, or what is wrong. */
  readonly detail: string | null
}

/** What is kept of accounts and upstreams for the next start: the use of their budgets, quotas and pauses. */
export interface AccountHistory {
  /**
   * Counts what a try has used of the budgets of an account (its hash) or an upstream (`upstreamSubject`). `at` is its beginning in Unix
   * milliseconds, `cost` an amount of 10^-9.
   */
  readonly count: (subject: string, at: number, tokens: number, cost: bigint) => void
  /** What an account or an upstream has used of the windows that contain `now`. */
  readonly counters: (subject: string, now: number) => KeyCounters
  /** Notes that an account has changed. `read` is called when it is written. */
  readonly changed: (account: string, read: () => AccountState) => void
  /** The states of accounts by their hashes, without those that are over at a time. */
  readonly states: (now: number) => Effect.Effect<ReadonlyMap<string, AccountState>>
}

/** A usage store. Its methods never fail: what cannot be written stays in memory, and `status` says so. */
export interface UsageStoreShape {
  /** Adds a finished request; costs a few additions. */
  readonly add: (entry: UsageEntry) => void
  /** Answers a query, with the entries that are not written yet. */
  readonly query: (query: UsageQuery) => Effect.Effect<UsageReport>
  /**
   * What a key has used of the windows that contain `now` (milliseconds), for limits that this process counts alone. Zero where
   * nodes count together.
   */
  readonly counters: (key: string, now: number) => Effect.Effect<KeyCounters>
  /** Merges old hours into days and removes old days. The store does so itself every hour. */
  readonly compact: Effect.Effect<void>
  readonly status: Effect.Effect<StoreStatus>
  /** The history of admin changes; without it they are kept in memory. */
  readonly changes?: ChangeHistory
  /** What is kept of accounts and upstreams; absent where nodes keep it together. */
  readonly accounts?: AccountHistory
}

/** Options of every store. */
export interface UsageStoreOptions {
  /** Days that the history is kept, read at each compaction; `defaultKeepDays` unless given. */
  readonly keepDays?: (() => number) | undefined
  /** Days that the usage of sessions is kept, read at each compaction; `defaultSessionDays` unless given. */
  readonly sessionDays?: (() => number) | undefined
  /** Sessions that are kept; `mostSessionsKept` unless given. */
  readonly mostSessions?: number | undefined
}

/** Sessions that are kept; beyond this the one used longest ago is dropped. */
export const mostSessionsKept = 100_000

/** Hours, agents and apps that are kept of one session; beyond this, more agents of it are counted without their names. */
export const mostSessionRows = 1000

/** Buckets held in memory; beyond this the oldest are dropped. */
export const maxBuckets = 100_000

/** The `detail` of a status: its parts as one text, `null` without any; `dropped` counts the buckets lost from memory. */
export const detailOf = (dropped: number, ...parts: ReadonlyArray<string | undefined>): string | null => {
  const lost = dropped === 0
    ? undefined
    : `the history in memory is full: ${dropped} of its oldest entries were dropped`
  return [...parts, lost].filter((part) => part !== undefined).join("; ") || null
}
