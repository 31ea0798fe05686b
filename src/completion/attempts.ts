/**
 * The attempts of one request: the account of each, the consequences of a failure, and the end of retrying.
 *
 * Nothing has been sent before an attempt's first event, so an earlier failure may be retried on another account. Decisions
 * depend on this module's own counters; the request's stats are written and never read.
 */
import type * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Pull from "effect/Pull"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AccountPool, Lease } from "../accounts/Accounts.ts"
import { type Deadlines, withDeadline } from "../config/clock/Deadlines.ts"
import { pause } from "../config/clock/retry.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { classify } from "../domain/classifyUpstreamFailure.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { isShown } from "../domain/ReplyEvent.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { RequestBudget } from "../upstream/budget.ts"
import { type AttemptSpan, attemptSpan, untraced } from "./attemptSpan.ts"
import type { Batch, CompletionInput } from "./CompletionInput.ts"
import { collectReply, type OpenReply } from "./openReply.ts"
import type { ReplyStarter } from "./startReply.ts"
import { judgesChoice, toolChoiceFault } from "./toolPolicy.ts"
import { noteUnsent } from "./unsentFields.ts"

/** Most attempts of one request, the first included (behaviour: failover). */
export const mostAttempts = 3

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
const progressEvery = 5_000

/** Options of a request's attempts. */
interface AttemptOptions<A> {
  readonly accounts: AccountPool
  readonly startReply: ReplyStarter
  readonly deadlines: Deadlines["Service"]
  /** The configuration when the request started. */
  readonly config: GatewayConfig
  /** Makes the request's budget, at the first lease. */
  readonly makeBudget: () => RequestBudget
  /** Holds the attempts. */
  readonly scope: Scope.Scope
  /** Attempts are spans of a trace. */
  readonly traced: boolean
  /** The reply is sent as a whole: nothing is sent before its end, so every failure may be retried. */
  readonly whole: boolean
  /** Makes the result from a reply that has started. */
  readonly output: (reply: OpenReply) => Effect.Effect<A>
}

/** A started reply of an attempt. */
type Begun = Pick<OpenReply, "id" | "first" | "next" | "isOver">

const empty = Effect.fail(new UpstreamFailure({ phase: "stream", kind: "empty" }))

/** Fails a reply that ended without content, or was withdrawn before any content. */
const checkFirst = (batch: Batch, isEmpty: boolean): Effect.Effect<Batch, UpstreamFailure> => {
  const last = batch[batch.length - 1]!
  if (last._tag !== "Finish" || batch.some(isShown)) return Effect.succeed(batch)
  if (last.reason === "content_filter") {
    return Effect.fail(new UpstreamFailure({ phase: "stream", kind: "withdrawn" }))
  }
  // A stop sequence at the very start, and an output limit within hidden reasoning, make a complete reply without text.
  return isEmpty && last.reason === "stop" ? empty : Effect.succeed(batch)
}

/** One request's attempts. */
export class Attempts<A> {
  private readonly input: CompletionInput
  private readonly options: AttemptOptions<A>
  /** Accounts on which this request has failed. */
  private readonly avoid = new Set<string>()
  /** The account to lease again, after its token was replaced. */
  private stay: string | undefined
  /** Accounts whose token was replaced, once each. */
  private readonly refreshed = new Set<string | undefined>()
  private budget: RequestBudget | undefined
  private count = 0
  /** Attempts repeated on the same server. */
  private retries = 0
  /** Milliseconds of all attempts, without the queue. */
  private spent = 0
  /** Error of the previous attempt: the cause to report if no other account is available. */
  private before: GatewayError | undefined

  constructor(input: CompletionInput, options: AttemptOptions<A>) {
    this.input = input
    this.options = options
  }

  /** Attempts until a reply starts or no further attempt is allowed. */
  open(): Effect.Effect<A, GatewayError> {
    const { accounts, config, deadlines, scope } = this.options
    const { caller, stats } = this.input
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
    const { config, deadlines, scope } = this.options
    const { caller, conversation, model, stats } = this.input
    stats.queued += lease.waited
    stats.driver = lease.driver.name
    stats.accountHash = lease.accountHash
    stats.recording?.leased(lease.identifier)
    // A request has the same driver in all of its attempts.
    const unsent = this.count > 1 ? undefined : noteUnsent(conversation, model, lease.driver, stats)
    if (unsent !== undefined) return Effect.fail(unsent)
    if (conversation.vendorTools !== undefined && !judgesChoice(conversation, lease.driver.family)) {
      const fault = toolChoiceFault(conversation)
      if (fault !== undefined) return Effect.fail(fault)
    }
    stats.upstreamCalled = true
    const began = deadlines.now()
    stats.waiting = { for: "upstream", since: began }
    const over = () => {
      const took = deadlines.now() - began
      stats.waiting = undefined
      stats.upstream += took
      this.spent += took
    }
    const run = (span: AttemptSpan) =>
      Effect.matchEffect(span.inSpan(this.begin(lease, attempt)), {
        onSuccess: (begun) => {
          over()
          return this.options.output({
            ...begun,
            next: span.inSpan(begun.next),
            driver: lease.driver.name,
            lease,
            attempt,
            scope,
            direct: caller._tag === "Direct",
            stats,
            span
          })
        },
        onFailure: (failure) => {
          over()
          return this.failed(failure, lease, attempt, span)
        }
      })
    if (!this.options.traced) return run(untraced)
    const span = attemptSpan({
      model,
      conversation,
      driver: lease.driver.name,
      accountHash: lease.accountHash,
      attempt: this.count,
      captureContent: config.telemetry.capture_content
    })
    return Effect.flatMap(Scope.provide(span, attempt), run)
  }

  /** Starts the reply on a lease, up to its first content, or to the end of a whole reply. */
  private begin(
    lease: Lease,
    attempt: Scope.Scope
  ): Effect.Effect<Begun, UpstreamFailure | GatewayError, Scope.Scope> {
    const { config, deadlines, makeBudget, startReply, whole } = this.options
    const { input } = this
    const budget = this.budget ??= makeBudget()
    budget.isEmpty = true
    const most = Math.max(1, config.upstream.timeouts.attempts * 1000 - this.spent)
    let produced = 0
    const first = Effect.flatMap(
      startReply({ ...input, budget, config }, lease, attempt),
      ({ events, id, isOver }) =>
        // `Stream.toPull` would add a lock, which costs five steps per chunk.
        Effect.flatMap(Channel.toPullScoped(Stream.toChannel(events), attempt), (next) =>
          Effect.matchCauseEffect(next, {
            onSuccess: (batch) =>
              Effect.flatMapEager(checkFirst(batch, budget.isEmpty), (first) => {
                input.stats.firstEventAt = deadlines.now()
                input.stats.recording?.progressed()
                return Effect.mapEager(lease.report(undefined, undefined), (): Begun => ({ id, isOver, first, next }))
              }),
            onFailure: (cause) =>
              Pull.isDoneCause(cause)
                ? empty
                : Effect.failCause(cause as Cause.Cause<UpstreamFailure | GatewayError>)
          }))
    )
    const begun = withDeadline(
      first,
      deadlines,
      most,
      () => new UpstreamFailure({ phase: "completion", kind: "timeout" }),
      // Output that is not sent, such as hidden reasoning, counts as progress.
      () => {
        const isGrowing = budget.produced > produced
        produced = budget.produced
        return isGrowing ? progressEvery : 0
      }
    )
    if (!whole) return begun
    return Effect.flatMap(
      begun,
      (begun) => Effect.mapEager(collectReply(begun.first, begun.next), (first): Begun => ({ ...begun, first }))
    )
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
    const { caller, stats } = this.input
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
    const isLast = judged.retry === "no" || this.count >= mostAttempts ||
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
