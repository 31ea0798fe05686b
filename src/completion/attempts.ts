/**
 * The attempts of one request: on which account, what a failure means for the next one, and when there is none.
 *
 * Nothing of an attempt has been shown before its first event, so a failure until then may be tried again elsewhere. Control
 * goes by what is counted here; the request's record is written and never read.
 */
import type * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { AccountPool, Lease } from "../accounts/Accounts.ts"
import { type Deadlines, withDeadline as within } from "../config/clock/Deadlines.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { classify } from "../domain/classifyUpstreamFailure.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { RequestBudget } from "../upstream/budget.ts"
import { type AttemptSpan, attemptSpan, untraced } from "./attemptSpan.ts"
import { collectReply } from "./collectReply.ts"
import type { Batch, CompletionInput } from "./CompletionInput.ts"
import type { OpenReply } from "./openReply.ts"
import { retryDelay } from "./retryDelay.ts"
import type { ReplyStarter } from "./startReply.ts"

/** Attempts of one request, the first included (behaviour: failover). */
const mostAttempts = 3

/** An attempt whose time is over goes on for as long as it brings something new within this time, in milliseconds. */
const progressEvery = 5_000

/** What the attempts of a request are made with. */
export interface AttemptOptions<A> {
  readonly accounts: AccountPool
  readonly startReply: ReplyStarter
  readonly deadlines: Deadlines["Service"]
  /** The configuration that the request began with. */
  readonly config: GatewayConfig
  /** Makes what the request may cost, at its first lease. */
  readonly makeBudget: () => RequestBudget
  /** Holds the attempts. */
  readonly scope: Scope.Scope
  /** Attempts are spans of a trace. */
  readonly traced: boolean
  /** The caller gets the reply in one piece: none of it is shown before its end, so that every failure may be tried again. */
  readonly whole: boolean
  /** Makes of a reply that has begun what the caller gets. */
  readonly output: (reply: OpenReply) => Effect.Effect<A>
}

/** What an attempt has brought. */
type Begun = Pick<OpenReply, "id" | "first" | "next" | "isOver">

const empty = Effect.fail(new UpstreamFailure({ phase: "stream", kind: "empty" }))

/** Fails what ended without anything to show, and what was withdrawn before anything was. */
const checkFirst = (batch: Batch): Effect.Effect<Batch, UpstreamFailure> => {
  const last = batch[batch.length - 1]!
  if (last._tag !== "Finish" || batch.some(isShown)) return Effect.succeed(batch)
  if (last.reason === "content_filter") {
    return Effect.fail(new UpstreamFailure({ phase: "stream", kind: "withdrawn" }))
  }
  // A stop sequence at the very start makes a reply without text that is whole all the same.
  if (last.reason === "stop_sequence") return Effect.succeed(batch)
  return empty
}

const isShown = (event: Batch[number]): boolean => event._tag !== "UsageReported" && event._tag !== "Finish"

/** One request's attempts. */
export class Attempts<A> {
  private readonly input: CompletionInput
  private readonly options: AttemptOptions<A>
  /** Accounts that have failed this request. */
  private readonly avoid = new Set<string>()
  private stay: string | undefined
  /** Accounts whose token was replaced: each may have that once. */
  private readonly refreshed = new Set<string | undefined>()
  private budget: RequestBudget | undefined
  private count = 0
  /** Those that were made again at the same server. */
  private retries = 0
  /** Milliseconds that attempts have taken, apart from the queue. */
  private spent = 0
  /** What the attempt before came to: when no account is left because of that, it is the cause to tell. */
  private before: GatewayError | undefined

  constructor(input: CompletionInput, options: AttemptOptions<A>) {
    this.input = input
    this.options = options
  }

  /** Tries until there is a reply, or no other try is worth it. */
  open(): Effect.Effect<A, GatewayError> {
    const { accounts, config, deadlines, scope } = this.options
    const { caller, stats } = this.input
    // A request that is over gives nothing back any more.
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

  /** One attempt on a lease, and what follows from it. */
  private on(
    lease: Lease,
    attempt: Scope.Closeable
  ): Effect.Effect<A, GatewayError, Scope.Scope> {
    const { config, deadlines, scope } = this.options
    const { caller, conversation, model, stats } = this.input
    stats.queued += lease.waited
    stats.driver = lease.driver.name
    stats.accountHash = lease.accountHash
    stats.record?.leased(lease.identifier)
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
      Effect.matchEffect(span.within(this.begin(lease, attempt)), {
        onSuccess: (begun) => {
          over()
          return this.options.output({
            ...begun,
            next: span.within(begun.next),
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

  /** The reply on a lease, up to the first events that show something, or to the end where it is wanted whole. */
  private begin(
    lease: Lease,
    attempt: Scope.Scope
  ): Effect.Effect<Begun, UpstreamFailure | GatewayError, Scope.Scope> {
    const { config, deadlines, makeBudget, startReply, whole } = this.options
    const { input } = this
    const budget = this.budget ??= makeBudget()
    const most = Math.max(1, config.upstream.timeouts.attempts * 1000 - this.spent)
    let produced = 0
    const first = Effect.flatMap(
      startReply({ ...input, budget, config }, lease, attempt),
      ({ events, id, isOver }) =>
        // Unlike that of `Stream.toPull`, this pull has no lock, which is five steps for each chunk.
        Effect.flatMap(Channel.toPullScoped(Stream.toChannel(events), attempt), (next) =>
          Effect.matchCauseEffect(next, {
            onSuccess: (batch) =>
              Effect.flatMapEager(checkFirst(batch), (first) => {
                input.stats.firstEventAt = deadlines.now()
                input.stats.record?.progressed()
                return Effect.mapEager(lease.report(undefined, undefined), (): Begun => ({ id, isOver, first, next }))
              }),
            onFailure: (cause) =>
              Pull.isDoneCause(cause)
                ? empty
                : Effect.failCause(cause as Cause.Cause<UpstreamFailure | GatewayError>)
          }))
    )
    const begun = within(
      first,
      deadlines,
      most,
      () => new UpstreamFailure({ phase: "completion", kind: "timeout" }),
      // What is not shown, such as hidden reasoning, may take its time.
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

  /** There is one account at most: another try asks the same server the same. */
  private isAlone(): boolean {
    const { account_max_inflight, recommended_concurrency } = this.options.config.runtime
    return recommended_concurrency <= account_max_inflight
  }

  /** Draws the consequences of a failure of which nothing was shown. */
  private failed(
    failure: UpstreamFailure | GatewayError,
    lease: Lease,
    attempt: Scope.Closeable,
    span: AttemptSpan
  ): Effect.Effect<A, GatewayError> {
    const { caller, stats } = this.input
    // Whoever asked has left: what the upstream broke off is no fault of anybody's.
    if (attempt.state._tag === "Closed") return Effect.interrupt
    // Nobody has seen anything of it.
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
          // What takes the account out of rotation has a delay of its own.
          return judged.health === "none"
            ? Effect.andThen(retryDelay(this.retries), Effect.suspend(() => this.open()))
            : this.open()
        }
        if (lease.account !== undefined) this.avoid.add(lease.account)
        stats.failovers++
      }
      return this.open()
    })
    // The pool learns of it before the slot is free: whoever waits must not be given the account that has just failed.
    return lease.report(judged.health, judged.retryAfter).pipe(
      Effect.andThen(refresh ? lease.refreshToken : Effect.void),
      Effect.andThen(Scope.close(attempt, Exit.void)),
      Effect.andThen(next)
    )
  }
}
