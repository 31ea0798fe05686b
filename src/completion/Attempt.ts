/**
 * One attempt of a request on a lease: it starts the reply within its time, and reports to the pool how it went.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Caller, Lease, LeaseTarget } from "../accounts/Accounts.ts"
import { isDirect, type Preference, type Stickiness, type TurnMemory } from "../accounts/Lease.ts"
import type { Deadlines } from "../config/clock/Deadlines.ts"
import { type Classification, classify, isOfModel } from "../domain/classifyUpstreamFailure.ts"
import { refusesRequest } from "../domain/failureReasons.ts"
import { plainContext } from "../domain/failureRules.ts"
import type { Windows } from "../domain/fits.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { limitHeadersOf } from "../domain/limitHeaders.ts"
import type { Route, Target } from "../domain/routes.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import { hasOneAccount, type PlaceRequest, type Tried } from "../placement/place.ts"
import { upstreamFault } from "../placement/UpstreamCooling.ts"
import type { AnswerHeaders } from "../upstream/budget.ts"
import type { Driver } from "../upstream/Upstream.ts"
import type { AttemptSpan } from "./attemptSpan.ts"
import type { AttemptsRecord } from "./AttemptsRecord.ts"
import { isFarOfModel } from "./farWait.ts"
import type { Request } from "./Request.ts"
import type { ServerWords } from "./serverWords.ts"
import type { StrictSchema } from "./strictSchemas.ts"
import type { Budgeted } from "./TryBudget.ts"

/** An attempt may exceed its time limit while it makes progress within this interval, in milliseconds. */
export const progressEvery = 5_000

/** The failure of an attempt at its time limit. */
export const attemptOverdue = () => new UpstreamFailure({ phase: "completion", kind: "timeout" })

/** What the attempts of one kind of request do. One object serves all attempts of a request. */
export abstract class AttemptWork<B, A> {
  abstract readonly caller: Caller
  abstract readonly request: Request
  /** What was asked for. */
  abstract readonly route: Route
  /** The conversation that prefers the account which answered it last. */
  readonly sticky: Stickiness | undefined
  /** The accounts that the request prefers before that one. */
  readonly prefers: ReadonlyArray<Preference> | undefined
  /** What the turns of its conversation leave to each other. */
  readonly memory: TurnMemory | undefined

  /** Whether a target can serve the request. Asked only where the route has several. */
  abstract canServe(driver: Driver, target: Target): boolean

  /** The windows of targets in tokens. Asked only where the route has several. */
  windowsOf(targets: ReadonlyArray<Target>): Windows {
    return targets.map(() => undefined)
  }

  /** The estimated tokens of its prompt, and those that it asks for; `undefined` where the windows of its targets do not decide. */
  size(): PlaceRequest["size"] {
    return undefined
  }

  /** The strict schema that the request wants its reply to fit; `undefined` without one. */
  get schema(): StrictSchema | undefined {
    return undefined
  }

  /** Notes what the driver does not send. Returns the error if the driver cannot serve the request. */
  abstract refuse(driver: Driver, target: Target): GatewayError | undefined

  /** Whether the caller speaks the contract of the driver's server, and sees its codes. */
  keepsCode(_driver: Driver, _target: Target): boolean {
    return false
  }

  /** Starts the span of an attempt, counted from 1, while tracing is on; `undefined` for a kind of request without spans. */
  span(_lease: Lease, _target: Target, _count: number): Effect.Effect<AttemptSpan | undefined, never, Scope.Scope> {
    return Effect.undefined
  }

  /**
   * Makes one attempt, up to the point from which failures are not retried; reports to the lease if the account works. `most` is the
   * attempt's time limit in milliseconds.
   */
  abstract begin(
    lease: Lease,
    target: Target,
    attempt: Scope.Scope,
    most: number
  ): Effect.Effect<B, UpstreamFailure | GatewayError, Scope.Scope>

  /** Whether the request takes no place in the queue: without a free slot its lease fails immediately. */
  get isImpatient(): boolean {
    return false
  }

  /** What its tries may use of budgets. Asked only where an account or an upstream has one. */
  abstract budgeted(): Budgeted

  /** The next attempt has reserved the most that it can use, so that the server must heed the limit of output. */
  bounded(): void {}

  /** Whether the request cannot be sent again. */
  isSpent(): boolean {
    return false
  }

  /** The headers of the attempt's newest answer. */
  abstract heard(): AnswerHeaders | undefined

  /** The event of the attempt's reply that states the account's quota. */
  statedQuota(): unknown {
    return undefined
  }

  /** Makes the result. The attempt's scope holds the lease. */
  abstract output(
    begun: B,
    lease: Lease,
    attempt: Scope.Closeable,
    span: AttemptSpan | undefined,
    words: ServerWords
  ): Effect.Effect<A>
}

/** A model of an upstream, as the pools know it. */
export const leaseTarget = ({ model, upstream }: Target): LeaseTarget => ({ upstream, model: model.id })

/** What an attempt needs beside its work. */
interface AttemptFacts {
  readonly lease: Lease
  readonly target: Target
  /** Holds the lease. */
  readonly scope: Scope.Closeable
  /** The start of the attempt, and its time limit in milliseconds. */
  readonly began: number
  readonly most: number
  readonly accounts: PlaceRequest["accounts"]
  /** What the request has tried before. */
  readonly tried: Tried
  readonly words: ServerWords
}

export class Attempt<B, A> {
  readonly #work: AttemptWork<B, A>
  readonly #facts: AttemptFacts
  readonly #deadlines: Deadlines["Service"]
  readonly #record: AttemptsRecord

  constructor(
    work: AttemptWork<B, A>,
    facts: AttemptFacts,
    deadlines: Deadlines["Service"],
    record: AttemptsRecord
  ) {
    this.#work = work
    this.#facts = facts
    this.#deadlines = deadlines
    this.#record = record
  }

  /**
   * Makes the attempt. `failed` goes on after a failure of the upstream, which took the given milliseconds; the attempt is closed then, and
   * the pool knows of the failure.
   */
  run(
    span: AttemptSpan | undefined,
    failed: (failure: Classification, took: number) => Effect.Effect<A, GatewayError>
  ): Effect.Effect<A, GatewayError, Scope.Scope> {
    const deadlines = this.#deadlines
    const record = this.#record
    const work = this.#work
    const { began, lease, most, scope, target, words } = this.#facts
    const beginning = work.begin(lease, target, scope, most)
    return Effect.matchEffect(span === undefined ? beginning : span.inSpan(beginning), {
      onSuccess: (begun) => {
        record.over(deadlines.now() - began)
        record.answered(lease)
        const stated = limitHeadersOf(work.heard())
        record.limits(words.limits(lease, stated))
        const output = work.output(begun, lease, scope, span, words)
        lease.shown.worked(deadlines.now() - began)
        const quota = lease.shown.saw(stated, undefined, work.statedQuota())
        return quota.seconds === undefined || quota.isOfModel
          ? output
          : Effect.andThen(lease.report("rate_limited", quota.seconds), output)
      },
      onFailure: (failure) => {
        const took = deadlines.now() - began
        record.over(took)
        return this.#failed(failure, span, took, failed)
      }
    })
  }

  #failed(
    failure: UpstreamFailure | GatewayError,
    span: AttemptSpan | undefined,
    took: number,
    then: (failure: Classification, took: number) => Effect.Effect<A, GatewayError>
  ): Effect.Effect<A, GatewayError> {
    const record = this.#record
    const work = this.#work
    const { accounts, lease, scope, target, tried, words } = this.#facts
    const stated = limitHeadersOf(work.heard())
    record.limits(words.limits(lease, stated))
    // The client has disconnected, which may have caused the failure.
    if (scope.state._tag === "Closed") return Effect.interrupt
    if (failure._tag === "GatewayError") {
      span?.failed(failure.code)
      record.refusedBy(failure.code)
      return Effect.fail(failure)
    }
    const { account, credential, shown } = lease
    const quota = shown.saw(stated, failure, work.statedQuota())
    const isModelOut = quota.isOfModel
    const judged = classify(failure, {
      ...plainContext,
      ...words.naming(lease),
      direct: isDirect(lease),
      mayRefresh: !tried.refreshed.has(account?.key) && credential.isRenewable,
      alone: hasOneAccount(accounts, lease.upstream),
      keyless: account?.isKeyless === true,
      keepsCode: work.keepsCode(lease.driver, target),
      resetsIn: quota.seconds,
      isModelOut,
      passing: words.passing(lease),
      secrets: credential.secrets()
    })
    const isFar = quota.seconds === undefined && isFarOfModel(lease, judged)
    // The server may state a later time than that of the window.
    const isPaused = isFar || (isModelOut && isOfModel(judged, { isModelOut, keyless: false }))
    if (isPaused && judged.retryAfter !== undefined) shown.paused(judged.retryAfter)
    const fault = upstreamFault(failure, judged.class)
    span?.failed(judged.error.code)
    record.failed(lease, judged, failure.status, fault === "connection" || refusesRequest(failure))
    // Of an upstream in trouble, only a 503 says when it is back.
    const retryAfter = !isFar && (fault === undefined || failure.status === 503) ? judged.retryAfter : undefined
    const limited = account?.isKeyless === true && judged.class === "rate_limited"
      ? shown.limited(judged.retryAfter)
      : Effect.void
    // A failure that says nothing else about the account may still say that its quota is used up.
    const usedUp = judged.health === "none" && !isModelOut ? quota.seconds : undefined
    // The pool learns of the failure before the slot is free: a waiter must not get the failed account.
    return lease.report(judged.health, retryAfter, fault).pipe(
      Effect.andThen(usedUp === undefined ? Effect.void : lease.report("rate_limited", usedUp)),
      Effect.andThen(limited),
      Effect.andThen(judged.retry === "here_after_refresh" ? credential.drop : Effect.void),
      Effect.andThen(Scope.close(scope, Exit.void)),
      Effect.andThen(Effect.suspend(() => {
        record.keepTokens()
        return then(judged, took)
      }))
    )
  }
}
