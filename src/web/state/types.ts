/**
 * What the admin API answers, by the names that the pages use.
 */
import type { Reply } from "./client.ts"

export type Accounts = Reply<"admin-accounts", "list">
export type AccountItem = Accounts["items"][number]

/** The pool as the events tell it. */
export interface PoolNow {
  readonly total: number
  readonly available: number
  readonly in_use: number
  readonly cooling: number
  readonly out: number
  readonly disabled: number
  readonly max_inflight_per_account: number
  readonly global_max_inflight: number
  readonly changed: ReadonlyArray<AccountItem>
  readonly more: boolean
}

export interface Waiter {
  readonly age_ms: number
  readonly style: string
  readonly account: string | null
}

/** The queue as the events tell it. */
export interface QueueNow {
  readonly waiting: number
  readonly max_queue_size: number
  readonly oldest_wait_ms: number | null
  readonly waiters: ReadonlyArray<Waiter>
}

/** A request in the list. */
export type RequestItem = Reply<"admin-requests", "list">["items"][number]
