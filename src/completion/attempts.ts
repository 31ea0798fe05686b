/**
 * The attempts of one request: the account of each, the consequences of a failure, and the end of retrying.
 *
 * Completions, embeddings and carried requests go by the same attempts. Nothing has been sent before an attempt's output, so an
 * earlier failure may be retried on another account. Decisions depend on this module's own counters; the request's stats are written
 * and never read.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import type { AccountPool, Caller, Lease } from "../accounts/Accounts.ts"
import type { Deadlines } from "../config/clock/Deadlines.ts"
import { pause } from "../config/clock/retry.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { classify } from "../domain/classifyUpstreamFailure.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Driver } from "../upstream/Upstream.ts"
import { type AttemptSpan, untraced } from "./attemptSpan.ts"
import type { RequestStats } from "./RequestStats.ts"

/** Most attempts of one request, the first included (behaviour: failover). */
const mostAttempts = 3

/** Milliseconds before the first and the second retry. */
const delays = [100, 400]

/** Largest random extension of a delay, as a share of it, so that requests that failed together are not retried together. */
const jitter = 0.25

/** Waits before the `count`-th retry (from 1) on the same server. */
export const retryDelay = (count: number): Effect.Effect<void> =>
  Effect.flatMap(
    Random.next,
    (random) => pause(delays[Math.min(count, delays.length) - 1]! * (1 + jitter * random))
  )

/** An attempt may exceed its time limit while it makes progress within this interval, in milliseconds. */
export const progressEvery = 5_000

/** What the attempts of one kind of request do. One object serves all attempts of a request. */
export interface AttemptWork<B, A> {
  readonly caller: Caller
  readonly stats: RequestStats
  /** Notes what the driver does not send. Returns the error if the driver cannot serve the request. */
  readonly refuse: (driver: Driver) => GatewayError | undefined
  /** Starts the span of an attempt, counted from 1, while tracing is on. Without it, attempts have no spans. */
  readonly span?: (lease: Lease, count: number) => Effect.Effect<AttemptSpan, never, Scope.Scope>
  /**
   * Makes one attempt, up to the point from which failures are not retried; reports to the lease if the account works. `most` is the
   * attempt's time limit in milliseconds.
   */
  readonly begin: (
    lease: Lease,
    attempt: Scope.Scope,
    most: number
  ) => Effect.Effect<B, UpstreamFailure | GatewayError, Scope.Scope>
  /** True if the request cannot be sent again. */
  readonly isSpent?: () => boolean
  /** Makes the result. The attempt's scope holds the lease. */
  readonly output: (begun: B, lease: Lease, attempt: Scope.Closeable, span: AttemptSpan) => Effect.Effect<A>
}

/** Options of a request's attempts. */
export interface AttemptOptions {
  readonly accounts: AccountPool
  readonly deadlines: Deadlines["Service"]
  /** The configuration when the request started. */
  readonly config: GatewayConfig
  /** Holds the attempts. */
  readonly scope: Scope.Scope
  /** Attempts are spans of a trace. */
  readonly traced: boolean
}

/** The failure of an attempt at its time limit. */
export const attemptOverdue = () => new UpstreamFailure({ phase: "completion", kind: "timeout" })

/** One request's attempts. */
export class Attempts<B, A> {
  private readonly work: AttemptWork<B, A>
  private readonly options: AttemptOptions
  /** Accounts on which this request has failed. */
  private readonly avoid = new Set<string>()
  /** The account to lease again, after its token was replaced. */
  private stay: string | undefined
  /** Accounts whose token was replaced, once each. */
  private readonly refreshed = new Set<string | undefined>()
  private count = 0
  /** Attempts repeated on the same server. */
  private retries = 0
  /** Milliseconds of all attempts, without the queue. */
  private spent = 0
  /** Error of the previous attempt: the cause to report if no other account is available. */
  private before: GatewayError | undefined

  constructor(work: AttemptWork<B, A>, options: AttemptOptions) {
    this.work = work
    this.options = options
  }

  /** Attempts until one succeeds or no further attempt is allowed. */
  open(): Effect.Effect<A, GatewayError> {
    const { accounts, config, deadlines, scope } = this.options
    const { caller, stats } = this.work
    // A request that is over can release nothing.
    if (scope.state._tag === "Closed") return Effect.interrupt
    const attempt = Scope.forkUnsafe(scope)
    this.count++
    stats.attempts = this.count
    stats.driver = config.upstream.driver
    stats.waiting = { for: "queued", since: deadlines.now() }
    const leased = Effect.matchEffect(
      accounts.lease(caller, { avoid: this.avoid, stay: this.stay, style: stats.style }),
      {
        onFailure: (error) =>
          Effect.fail(
            error.code === this.before?.code
              ? gatewayError(error.code, this.before.message, {
                retryAfter: error.retryAfter,
                cause: this.before.cause
              })
              : error
          ),
        onSuccess: (lease) => this.on(lease, attempt)
      }
    )
    return Scope.provide(leased, attempt)
  }

  /** Makes one attempt on a lease, and handles its outcome. */
  private on(
    lease: Lease,
    attempt: Scope.Closeable
  ): Effect.Effect<A, GatewayError, Scope.Scope> {
    const { config, deadlines, traced } = this.options
    const { work } = this
    const { stats } = work
    stats.queued += lease.waited
    stats.driver = lease.driver.name
    stats.accountHash = lease.accountHash
    stats.recording?.leased(lease.identifier)
    // A request has the same driver in all of its attempts.
    const refused = this.count > 1 ? undefined : work.refuse(lease.driver)
    if (refused !== undefined) return Effect.fail(refused)
    stats.upstreamCalled = true
    const began = deadlines.now()
    stats.waiting = { for: "upstream", since: began }
    const over = () => {
      const took = deadlines.now() - began
      stats.waiting = undefined
      stats.upstream += took
      this.spent += took
    }
    const most = Math.max(1, config.upstream.timeouts.attempts * 1000 - this.spent)
    const run = (span: AttemptSpan) =>
      Effect.matchEffect(span.inSpan(work.begin(lease, attempt, most)), {
        onSuccess: (begun) => {
          over()
          return work.output(begun, lease, attempt, span)
        },
        onFailure: (failure) => {
          over()
          return this.failed(failure, lease, attempt, span)
        }
      })
    return traced && work.span !== undefined
      ? Effect.flatMap(Scope.provide(work.span(lease, this.count), attempt), run)
      : run(untraced)
  }

  /** True if there is at most one account: another attempt would repeat the same request. */
  private isAlone(): boolean {
    const { account_max_inflight, recommended_concurrency } = this.options.config.runtime
    return recommended_concurrency <= account_max_inflight
  }

  /** Handles a failure before anything was sent: reports it to the pool, then retries or fails. */
  private failed(
    failure: UpstreamFailure | GatewayError,
    lease: Lease,
    attempt: Scope.Closeable,
    span: AttemptSpan
  ): Effect.Effect<A, GatewayError> {
    const { caller, stats } = this.work
    // The client has disconnected, which may have caused the failure.
    if (attempt.state._tag === "Closed") return Effect.interrupt
    // Nothing of the failed reply was sent, so its tokens do not count.
    stats.soFar = undefined
    if (failure._tag === "GatewayError") {
      span.failed(failure.code)
      return Effect.fail(failure)
    }
    const judged = classify(failure, {
      direct: caller._tag === "Direct",
      mayRefresh: !this.refreshed.has(lease.account) && lease.driver.capabilities.login,
      shown: false,
      alone: this.isAlone(),
      secrets: lease.secrets()
    })
    span.failed(judged.error.code)
    const refresh = judged.retry === "here_after_refresh"
    this.before = judged.error
    const isLast = judged.retry === "no" || this.count >= mostAttempts || this.work.isSpent?.() === true ||
      this.spent >= this.options.config.upstream.timeouts.attempts * 1000
    const isPinned = caller._tag === "Managed" && caller.target !== undefined
    const next = Effect.suspend((): Effect.Effect<A, GatewayError> => {
      if (isLast || (isPinned && !refresh)) return Effect.fail(judged.error)
      if (refresh) {
        this.refreshed.add(lease.account)
        this.stay = lease.account
      } else {
        this.stay = undefined
        if (this.isAlone()) {
          this.retries++
          stats.retries = this.retries
          // A failure that takes the account out of rotation has a delay of its own.
          return judged.health === "none"
            ? Effect.andThen(retryDelay(this.retries), Effect.suspend(() => this.open()))
            : this.open()
        }
        if (lease.account !== undefined) this.avoid.add(lease.account)
        stats.failovers++
      }
      return this.open()
    })
    // The pool learns of the failure before the slot is free: a waiter must not get the failed account.
    return lease.report(judged.health, judged.retryAfter).pipe(
      Effect.andThen(refresh ? lease.refreshToken : Effect.void),
      Effect.andThen(Scope.close(attempt, Exit.void)),
      Effect.andThen(next)
    )
  }
}
