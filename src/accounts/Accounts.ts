/**
 * Who may call the upstream: leases on accounts of the pool, or a caller's own token.
 *
 * A lease is a scoped resource. Whatever ends its scope gives the slot back exactly once.
 */
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { AccountHealth } from "../domain/classifyUpstreamFailure.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Credential, Driver } from "../upstream/Upstream.ts"

/** Who calls: the bearer of a configured key, or someone with an upstream token of their own (spec "Authentication"). */
export type Caller =
  | {
    readonly _tag: "Managed"
    /** Hash of the credential: the owner of what the caller stores. */
    readonly owner: string
    /** `X-Gateway-Target-Account`, trimmed, where it was sent. */
    readonly target: string | undefined
  }
  | { readonly _tag: "Direct"; readonly owner: string; readonly token: string }

/** Which account a lease may be on. */
export interface LeaseOptions {
  /** Accounts that this request has failed on, by `Lease.account`; they come last, and never when others may serve. */
  readonly avoid: ReadonlySet<string>
  /** The account to stay on, by `Lease.account`: another try of the same request on the same account. */
  readonly stay: string | undefined
}

/** A slot of one account, held until its scope closes. */
export interface Lease {
  /** The driver that the credential is for; a changed upstream never sees it. */
  readonly driver: Driver
  readonly credential: Credential
  /** The account's key within the pool; `undefined` for a caller's own token. For logs use `accountHash`. */
  readonly account: string | undefined
  /** Twelve hex digits that stand for the account in logs and traces; `undefined` for a caller's own token. */
  readonly accountHash: string | undefined
  /** Milliseconds that the request waited in the queue for this lease. */
  readonly waited: number
  /** Drops the token that the upstream has refused, so that the next use logs in anew. */
  readonly refreshToken: Effect.Effect<void>
  /** Tells the pool what the attempt showed of the account. `undefined`: it worked. */
  readonly report: (health: AccountHealth | undefined, retryAfter: number | undefined) => Effect.Effect<void>
  /** Says which upstream session the attempt made, for the clean-up that `auto_delete` asks for after the slot is free. */
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
}

/** The pool of accounts. */
export class Accounts extends Context.Service<Accounts, {
  /**
   * Waits for a slot and holds it until the scope closes. Fails with `rate_limit_exceeded` (queue full, or waited too
   * long), `upstream_rate_limited` (every account that may be used is cooling and none recovers in time),
   * `no_account_available`, `invalid_request` (unknown pinned account), `authentication_failed` (direct tokens are off).
   */
  readonly lease: (caller: Caller, options: LeaseOptions) => Effect.Effect<Lease, GatewayError, Scope.Scope>
  readonly status: Effect.Effect<QueueStatus>
}>()("model-gateway/accounts/Accounts") {}
