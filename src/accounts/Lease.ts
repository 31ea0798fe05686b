/**
 * What the pool is to those who use it: callers, leases, and what can be seen from outside.
 *
 * A lease is a scoped resource. Whatever ends its scope gives the slot back exactly once.
 */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { AccountHealth } from "../domain/classifyUpstreamFailure.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Credential, Driver } from "../upstream/Upstream.ts"
import type { TestStatus } from "./PooledAccount.ts"
import type { SlotState } from "./PoolState.ts"

/** Who calls: the bearer of a configured key, or someone with an upstream token of their own (spec "Authentication"). */
export type Caller =
  | {
    readonly _tag: "Managed"
    /** Hash of the credential: the owner of what the caller stores. */
    readonly owner: string
    /** `X-Gateway-Target-Account`, trimmed, where it was sent. */
    readonly target: string | undefined
    /** Id of the business key; absent for a caller within the process. */
    readonly key?: string | undefined
  }
  | { readonly _tag: "Direct"; readonly owner: string; readonly token: string }

/** Which account a lease may be on. */
export interface LeaseOptions {
  /** Accounts that this request has failed on, by `Lease.account`; they come last, and never when others may serve. */
  readonly avoid?: ReadonlySet<string> | undefined
  /** The account to stay on, by `Lease.account`: another try of the same request on the same account. */
  readonly stay?: string | undefined
  /** Style of the request, for whoever looks at the queue. */
  readonly style?: string | undefined
}

/** A slot of one account, held until its scope closes. */
export interface Lease {
  /** The driver that the credential is for; a changed upstream never sees it. */
  readonly driver: Driver
  readonly credential: Credential
  /** The account's key within the pool; `undefined` for a caller's own token. For logs use `accountHash`. */
  readonly account: string | undefined
  /** The account as operators know it (spec "Account"); `undefined` for a caller's own token. */
  readonly identifier: string | undefined
  /** Twelve hex digits that stand for the account in logs and traces; `undefined` for a caller's own token. */
  readonly accountHash: string | undefined
  /** What the upstream has been told of the account and its token, and must not be quoted with. */
  readonly secrets: () => ReadonlyArray<string>
  /** Milliseconds that the request waited in the queue for this lease. */
  readonly waited: number
  /** Drops the token that the upstream has refused, so that the next use logs in anew. */
  readonly refreshToken: Effect.Effect<void>
  /** Tells the pool what the attempt showed of the account, as soon as it is called. `undefined`: it worked. */
  readonly report: (health: AccountHealth | undefined, retryAfter: number | undefined) => Effect.Effect<void>
  /** Says, as soon as it is called, which upstream session the attempt made, for the clean-up that `auto_delete` asks for after the slot is free. */
  readonly usedSession: (sessionId: string) => Effect.Effect<void>
}

/** The queue as the admin API shows it (spec "Queue status"). */
export interface QueueStatus {
  readonly available: number
  readonly in_use: number
  readonly total: number
  readonly available_accounts: ReadonlyArray<string>
  readonly in_use_accounts: ReadonlyArray<string>
  readonly max_inflight_per_account: number
  readonly global_max_inflight: number
  readonly recommended_concurrency: number
  readonly waiting: number
  readonly max_queue_size: number
  /** Accounts that the upstream limits, that are out of rotation, and that their operator keeps out of use. */
  readonly cooling: number
  readonly out: number
  readonly disabled: number
  /** Why no account can be used, where they are all out of rotation. */
  readonly reason: string | null
  /** Milliseconds; `null` when nobody waits. */
  readonly oldest_wait_ms: number | null
  /** Those who wait longest, 50 at most. */
  readonly waiters: ReadonlyArray<QueueWaiter>
}

/** A request that waits for an account. */
export interface QueueWaiter {
  /** Milliseconds. */
  readonly age_ms: number
  /** Style of the request; empty where it is not known. */
  readonly style: string
  /** The account that it is pinned to, or `null`. */
  readonly account: string | null
}

/** An account without a slot of it: for tests of accounts and the care of their sessions, which no limit must hold up. */
export type AccountAccess = Pick<
  Lease,
  "driver" | "credential" | "account" | "identifier" | "accountHash" | "secrets" | "refreshToken" | "report"
>

/** What the pool knows of a configured account. */
export interface AccountFacts {
  readonly identifier: string
  /** Twelve hex digits that stand for the account in logs, traces and metrics. */
  readonly hash: string
  readonly inUse: number
  /** `ready`: in rotation; `cooling`: back after `recovery`; `out`: tried again after `recovery`. */
  readonly health: SlotState
  /** Its operator keeps it out of use. */
  readonly disabled: boolean
  /** Why it is not in rotation. */
  readonly reason: string | undefined
  /** Milliseconds until it comes back or is tried again; `undefined` in rotation, and while it is being tried. */
  readonly recovery: number | undefined
  /** What the last test showed; `failed` also while the upstream refuses the account (behaviour "Identities"). */
  readonly testStatus: TestStatus
  /** A token that the upstream has not refused: configured, or got by login. */
  readonly hasToken: boolean
  /** What may be shown of it; empty where there is none. */
  readonly tokenPreview: string
}

/** The state of the pool in numbers, for metrics. Counters count since the start. */
export interface AccountsMetrics {
  readonly inUse: number
  readonly waiting: number
  readonly accounts: {
    readonly ready: number
    readonly cooling: number
    readonly out: number
    /** No longer configured, with leases that still run. */
    readonly draining: number
  }
  readonly leases: number
  readonly logins: number
  readonly refreshes: number
  readonly loginFailures: number
  readonly sessionCleanUps: number
  readonly sessionCleanUpFailures: number
}

/** Told of changes as they happen, or not long after. Must be cheap and must not throw. */
export interface PoolWatch {
  /** An account, by its identifier, or numbers of the pool alone have changed. */
  readonly pool: (identifier: string | undefined) => void
  /** Somebody waits, or no longer does. */
  readonly queue: () => void
}

/** The pool of accounts. */
export interface AccountPool {
  /**
   * Waits for a slot and holds it until the scope closes. Fails with `rate_limit_exceeded` (queue full, or waited too
   * long), `upstream_rate_limited` (every account that may be used is cooling and none recovers in time),
   * `no_account_available`, `invalid_request` (unknown pinned account), `authentication_failed` (direct tokens are off).
   */
  readonly lease: (caller: Caller, options: LeaseOptions) => Effect.Effect<Lease, GatewayError, Scope.Scope>
  readonly status: Effect.Effect<QueueStatus>
  /**
   * A configured account, by any spelling of its identifier, without taking a slot, in or out of rotation. Fails with
   * `not_found`.
   */
  readonly withAccount: (identifier: string) => Effect.Effect<AccountAccess, GatewayError>
  /** Facts about accounts of the configuration, in the order given. */
  readonly describe: (identifiers: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<AccountFacts>>
  /** Records what a test of an account showed; `ok` brings it back into rotation. Unknown accounts are left alone. */
  readonly setTestStatus: (identifier: string, status: "ok" | "failed") => Effect.Effect<void>
  readonly metrics: Effect.Effect<AccountsMetrics>
  /** Tells `watch` of every change until the scope ends. */
  readonly watch: (watch: PoolWatch) => Effect.Effect<void, never, Scope.Scope>
}
