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
export interface RequestItem {
  readonly id: string
  readonly request_id: string
  readonly started_at: number
  readonly style: string
  readonly model: string
  readonly native_model: string | null
  readonly stream: boolean
  readonly key: string
  readonly account: string
  readonly state: string
  readonly outcome: string
  readonly status: number | null
  readonly error: string | null
  readonly finish: string | null
  readonly attempts: number
  readonly failovers: number
  readonly calls: number
  readonly queued_ms: number | null
  readonly first_event_ms: number | null
  readonly duration_ms: number | null
  readonly usage: {
    readonly prompt_tokens: number
    readonly completion_tokens: number
    readonly reasoning_tokens: number
  } | null
  readonly bodies_kept: boolean
}
