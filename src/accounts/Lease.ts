/**
 * The interface of the account pool: callers, leases, and what operators see.
 *
 * A lease is a scoped resource. However its scope ends, the slot is given back exactly once.
 */
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { CredentialFacts } from "../credentials/CredentialSource.ts"
import type { AccountHealth } from "../domain/failureRules.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Maker } from "../domain/makers.ts"
import type { QuotaWindow } from "../domain/quota.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { MoveCause } from "../domain/warmth.ts"
import type { SlotState } from "../placement/PoolState.ts"
import type { Hindrance } from "../placement/reasons.ts"
import type { UpstreamFault } from "../placement/UpstreamCooling.ts"
import type { Credential, Driver } from "../upstream/Upstream.ts"
import type { AccountWorkFacts } from "./AccountWork.ts"
import type { BudgetFacts, LeaseBudget } from "./budgets.ts"
import type { TestStatus } from "./PooledAccount.ts"
import type { QuotaSeen } from "./quota.ts"

/** A caller: `Managed` with a configured key, `Direct` with an upstream token of its own (spec "Authentication"). */
export type Caller =
  | {
    readonly _tag: "Managed"
    /** Hash of the credential: the owner of what the caller stores. */
    readonly owner: string
    /** The trimmed header `X-Gateway-Target-Account`, if it was sent. */
    readonly target: string | undefined
    /** Id of the business key; absent for a caller within the process. */
    readonly key?: string | undefined
    /** The caller's own login with a vendor, as a token (`domain/ownLogin.ts`). */
    readonly login?: string | undefined
  }
  | {
    readonly _tag: "Direct"
    readonly owner: string
    readonly token: string
    /** The token is a login beside a key: it goes to the targets of the lease. */
    readonly isLogin: boolean
  }

/** A request for a slot: where it may go, and what it needs there. `anywhere` asks for any account of the first upstream. */
export interface PlacementRequest {
  /** Identifies the request over its leases. */
  readonly request: string
  /** The style of the request, for the queue status. */
  readonly style: string
  /** What was asked for, for messages. */
  readonly model: string | undefined
  /** What may serve the request, in order of preference; any model of the first upstream without it. */
  readonly targets: ReadonlyArray<LeaseTarget> | undefined
  /** `order`: the first target with a free slot. `even`: the one with the largest share of free slots. */
  readonly spread: "order" | "even"
  /** Milliseconds at a full first target before the others count. */
  readonly wait: number
  /** Milliseconds that the request may wait; `request_timeouts.queue` without it. */
  readonly patience: number | undefined
  /** Accounts on which this request has failed, by their keys: used only while no other account is in rotation. */
  readonly avoid: ReadonlySet<string>
  /** The target that the request has failed on last, while others may serve it: the accounts in `avoid` do not serve it there. */
  readonly failed: LeaseTarget | undefined
  /** The key of the account to stay on: for a retry of the request on the same account. */
  readonly stay: string | undefined
  /** The conversation that prefers the account which answered it last. */
  readonly sticky: Stickiness | undefined
  /** Whose accounts are preferred, before `sticky`; the first that has a free one decides. */
  readonly prefers: ReadonlyArray<Preference>
  /** What the turns of its conversation leave to each other. Only a pool of several nodes carries it. */
  readonly memory: TurnMemory | undefined
  /** What the try reserves and uses of budgets; `undefined` where nothing has a budget. */
  readonly budget: LeaseBudget | undefined
}

/** A request for a slot of any account. */
export const anywhere: PlacementRequest = {
  request: "",
  style: "",
  model: undefined,
  targets: undefined,
  spread: "order",
  wait: 0,
  patience: undefined,
  avoid: new Set(),
  failed: undefined,
  stay: undefined,
  sticky: undefined,
  prefers: [],
  memory: undefined,
  budget: undefined
}

/** What the turns of a conversation leave to the next one, at whatever node that is answered. */
export interface TurnMemory {
  /** Stands for the conversation: a hash under its caller's key. */
  readonly key: () => string
  /** A turn before may have left something. */
  readonly isContinued: boolean
  /** What the turn before has left; a lease sets it. */
  last: string | undefined
  /** Makes what this turn leaves; `undefined` until its answer. */
  next: (() => string) | undefined
}

/** A preference for the accounts that open what one of them has sealed, or for that account alone. It never waits. */
export interface Preference {
  readonly maker: Maker
  /** Others of its organisation do not count. */
  readonly isAccount: boolean
  /** The target is preferred too. */
  readonly prefersTarget: boolean
}

/** What a request says of its conversation. */
export interface Stickiness {
  /**
   * What the conversation is known by, as hashes under its caller's key. The first that has an account decides; the first one gets the
   * account that answers.
   */
  readonly keys: readonly [string, ...ReadonlyArray<string>]
  /** The conversation has been answered before. */
  readonly isContinued: boolean
  /** The target is preferred too, and not the account within it alone. */
  readonly prefersTarget: boolean
  /** Milliseconds that an upstream keeps the prompt warm after an answer; 0 where nothing is preferred. */
  readonly lifetimeOf: (upstream: string) => number
}

/** A model of an upstream that may serve a request. */
export interface LeaseTarget {
  /** The upstream's name. */
  readonly upstream: string
  /** The model's id within the upstream. */
  readonly model: string
}

/** The account of a lease. */
export interface LeasedAccount {
  /** Its key within the pool. For logs use `hash`. */
  readonly key: string
  /** The account as operators know it (spec "Account"). */
  readonly identifier: string
  /** Twelve hex digits that stand for the account in logs and traces. */
  readonly hash: string
  /** Whether the account stands for an upstream that needs no credential of an account. */
  readonly isKeyless: boolean
  /** Names the accounts whose seals the account opens; `undefined` if that is unknown. */
  readonly organization: () => string | undefined
  /** Learns what the server says of the account's organisation. */
  readonly learnOrganization: (name: string) => void
}

/** The credential of a lease. */
export interface LeasedCredential extends Credential {
  /** Drops the token that the upstream has refused, so that the next use logs in again. */
  readonly drop: Effect.Effect<void>
  /** Whether a refused token may be replaced by a new one. */
  readonly isRenewable: boolean
  /** The account's names, password and token: removed where the upstream's words are quoted. */
  readonly secrets: () => ReadonlyArray<string>
}

/** Receives what the attempts on a lease show beside the health of its account (`Lease.report`). */
export interface Shown {
  /** An attempt begins. */
  readonly began: () => void
  /** It has made a reply, whose first event took so many milliseconds. */
  readonly answered: (first: number) => void
  /** It failed, by its account or upstream. */
  readonly failed: (failureClass: string, message: string) => void
  /** The server took the request for the model, after so many milliseconds. */
  readonly worked: (took: number) => void
  /** The headers of an answer, its failure, or an event of its stream. Returns what they say of the account's quota. */
  readonly saw: (
    headers: Readonly<Record<string, string>> | undefined,
    failure: UpstreamFailure | undefined,
    event: unknown
  ) => QuotaSeen
  /** The account is out for the model for so many seconds. */
  readonly paused: (seconds: number) => void
  /** The server of an upstream without accounts limits the model; `retryAfter` is in seconds. */
  readonly limited: (retryAfter: number | undefined) => Effect.Effect<void>
}

/** A slot of one account, held until its scope closes. */
export interface Lease {
  /** The name of the account's upstream. */
  readonly upstream: string
  /**
   * The model that serves the request: the first one of the upstream that its server takes at present; `undefined` for a request without
   * targets.
   */
  readonly model: string | undefined
  /** The driver of the credential. Another upstream never receives the credential. */
  readonly driver: Driver
  readonly credential: LeasedCredential
  /** `undefined` for a caller's own token. */
  readonly account: LeasedAccount | undefined
  /** Milliseconds that the request waited for this lease. */
  readonly waited: number
  /**
   * Reports what the attempt showed of the account; `undefined` if it worked. `retryAfter` is in seconds. `fault` is what it showed of the
   * upstream as a whole.
   */
  readonly report: (
    health: AccountHealth | undefined,
    retryAfter: number | undefined,
    fault?: UpstreamFault | undefined
  ) => Effect.Effect<void>
  readonly shown: Shown
  /** Registers, when it is called, an upstream session of the attempt; `auto_delete` deletes it after the lease. */
  readonly registerSession: (sessionId: string) => Effect.Effect<void>
}

/** True for a lease of a caller's own token. */
export const isDirect = ({ account }: Pick<Lease, "account">): boolean => account === undefined

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
  /** Accounts that the upstream limits, that are out of rotation, and that the operator has disabled. */
  readonly cooling: number
  readonly out: number
  readonly disabled: number
  /** Accounts in rotation whose last test failed. */
  readonly failed_tests: number
  /** Why all accounts are out of rotation, or `null`. */
  readonly reason: string | null
  /** Milliseconds; `null` while the queue is empty. */
  readonly oldest_wait_ms: number | null
  /** At most 50 waiting requests, the oldest first. */
  readonly waiters: ReadonlyArray<QueueWaiter>
  /** The pool of each upstream, where there are several. */
  readonly upstreams?: ReadonlyArray<Omit<UpstreamFacts, "budgets">> | undefined
}

/** What operators see of an upstream's pool. */
export interface UpstreamFacts {
  readonly name: string
  readonly accounts: {
    readonly ready: number
    readonly cooling: number
    readonly out: number
    readonly disabled: number
  }
  readonly in_use: number
  readonly max_inflight: number
  readonly waiting: number
  /** `cooled`: requests that have another target leave it out. */
  readonly state: "ready" | "cooled" | "disabled"
  /** Milliseconds until a request tries it again; `null` unless it is cooled. */
  readonly cooled_ms: number | null
  /** Why it is cooled, or why all of its accounts are out of rotation; else `null`. */
  readonly reason: string | null
  /** Its budgets with what is used of them. */
  readonly budgets: ReadonlyArray<BudgetFacts>
}

/** A request that waits for an account. */
export interface QueueWaiter {
  /** Milliseconds. */
  readonly age_ms: number
  /** The style of the request; empty if unknown. */
  readonly style: string
  /** The account that it is pinned to, or `null`. */
  readonly account: string | null
}

/** The use of an account without a slot: for account tests and the deletion of sessions, which limits do not hold up. */
export interface AccountAccess extends Pick<Lease, "upstream" | "driver" | "credential" | "report"> {
  readonly account: LeasedAccount
  /** Asks the source of its credential for a newer token; `undefined` for an account with a token or a login. */
  readonly renewNow: Effect.Effect<void, UpstreamFailure> | undefined
}

/** What operators see of a configured account. */
export interface AccountFacts {
  /** The name of its upstream. */
  readonly upstream: string
  readonly identifier: string
  /** Twelve hex digits that stand for the account in logs, traces and metrics. */
  readonly hash: string
  readonly inUse: number
  /** `ready`: in rotation; `cooling`: back after `recovery`; `out`: tried again after `recovery`. */
  readonly health: SlotState
  /** Whether the operator has disabled the account. */
  readonly disabled: boolean
  /** Why the account is out of rotation; `undefined` in rotation. */
  readonly reason: string | undefined
  /** Milliseconds until the account returns or is tried again; `undefined` in rotation and during a try. */
  readonly recovery: number | undefined
  /** The result of the last test; also `failed` while the upstream refuses the account (behaviour "Identities"). */
  readonly testStatus: TestStatus
  /** What it has done lately in this process. */
  readonly work: AccountWorkFacts
  /** What its server has said of its quota, as it is now. */
  readonly quota: ReadonlyArray<QuotaWindow>
  /** Its budgets with what is used of them. */
  readonly budgets: ReadonlyArray<BudgetFacts>
  /** Whether there is a token, configured or from a login, that the upstream has not refused. */
  readonly hasToken: boolean
  /** The part of the token that may be shown; empty without a token. */
  readonly tokenPreview: string
  /** What its credential does; `undefined` for an account with a token or a login. */
  readonly credential: CredentialFacts | undefined
}

/** Numbers of the pool for metrics. Counters count since the start. */
export interface AccountsMetrics {
  readonly inUse: number
  readonly waiting: number
  readonly accounts: {
    readonly ready: number
    readonly cooling: number
    readonly out: number
    /** Accounts that have left the configuration and still have leases. */
    readonly draining: number
  }
  readonly leases: number
  readonly logins: number
  readonly refreshes: number
  readonly loginFailures: number
  readonly sessionCleanUps: number
  readonly sessionCleanUpFailures: number
  /** Turns of sticky conversations that met the account of the turn before, and those that did not. */
  readonly stickyHits: number
  readonly stickyMoves: number
}

/** Receives changes immediately or after a short delay. The methods must be cheap and must not throw. */
export interface PoolWatch {
  /** An account changed, by its identifier; `undefined` for a change of the pool's numbers alone. */
  readonly pool: (identifier: string | undefined) => void
  /** The queue changed. */
  readonly queue: () => void
}

/** The pool of accounts. */
export interface AccountPool {
  /**
   * Waits for a slot and holds it until the scope closes. Fails with `rate_limit_exceeded` (queue full, or waited too
   * long), `upstream_rate_limited` (every account that may serve is cooling, and the first one returns too late),
   * `no_account_available`, `invalid_request` (unknown pinned account), `authentication_failed` (direct tokens are off).
   */
  readonly lease: (caller: Caller, request: PlacementRequest) => Effect.Effect<Lease, GatewayError, Scope.Scope>
  readonly status: Effect.Effect<QueueStatus>
  /**
   * The use of a configured account, in or out of rotation, by any spelling of its identifier or by what it made. Takes no slot. Fails with
   * `not_found`.
   */
  readonly access: (account: string | Maker) => Effect.Effect<AccountAccess, GatewayError>
  /** The facts of configured accounts, in the order given. */
  readonly describe: (identifiers: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<AccountFacts>>
  /**
   * Records the result of an account test, with its message for operators; `ok` brings the account back into rotation. Ignores unknown
   * accounts.
   */
  readonly setTestStatus: (identifier: string, status: "ok" | "failed", message?: string) => Effect.Effect<void>
  readonly metrics: Effect.Effect<AccountsMetrics>
  /** The driver of an upstream in effect. */
  readonly driverOf: (upstream: string) => Driver | undefined
  /** Why an account would not serve one more request now, as far as this process knows. */
  readonly whyNot: (last: LeaseTarget & { readonly account: string }) => MoveCause
  /**
   * Why the pool grants no slot of a target at present, as far as this process knows; `undefined` if it would, or if that is unknown. Costs the
   * same for every number of accounts.
   */
  readonly hindrance: (target: LeaseTarget) => Hindrance | undefined
  /** Notifies `watch` of every change until the scope ends. */
  readonly watch: (watch: PoolWatch) => Effect.Effect<void, never, Scope.Scope>
}
