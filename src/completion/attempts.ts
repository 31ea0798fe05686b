/**
 * The attempts of one request: the target and the account of each, the consequences of a failure, and the end of retrying.
 *
 * Completions, embeddings and carried requests go by the same attempts. Nothing has been sent before an attempt's output, so an
 * earlier failure may be retried: on another account of the target, or on another target of the route (`domain/nextTry.ts`). Decisions
 * depend on this module's own counters, not on the request's stats.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Scope from "effect/Scope"
import type { AccountPool, Caller, Lease, LeaseOptions, LeaseTarget } from "../accounts/Accounts.ts"
import type { ModelLimits, Stickiness } from "../accounts/Lease.ts"
import { upstreamFault } from "../accounts/UpstreamCooling.ts"
import type { Account } from "../config/Account.ts"
import type { Deadlines } from "../config/clock/Deadlines.ts"
import { pause } from "../config/clock/retry.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { type Classification, classify, isOfUpstream, refusesRequest } from "../domain/classifyUpstreamFailure.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { errorOfTries, nextTry, shareOfTime } from "../domain/nextTry.ts"
import type { Route, Target } from "../domain/routes.ts"
import { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Driver } from "../upstream/Upstream.ts"
import { type AttemptSpan, untraced } from "./attemptSpan.ts"
import { noteFailure, type RecordedTry, type RequestStats, type TokensSoFar } from "./RequestStats.ts"

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
  /** What was asked for. */
  readonly route: Route
  /** The conversation that prefers the account which answered it last. */
  readonly sticky?: Stickiness | undefined
  /** Whether a target can carry the request. Asked only where the route has several. */
  readonly canCarry: (driver: Driver, target: Target) => boolean
  /** Notes what the driver does not send. Returns the error if the driver cannot serve the request. */
  readonly refuse: (driver: Driver, target: Target) => GatewayError | undefined
  /** Starts the span of an attempt, counted from 1, while tracing is on. Without it, attempts have no spans. */
  readonly span?: (lease: Lease, count: number) => Effect.Effect<AttemptSpan, never, Scope.Scope>
  /**
   * Makes one attempt, up to the point from which failures are not retried; reports to the lease if the account works. `most` is the
   * attempt's time limit in milliseconds.
   */
  readonly begin: (
    lease: Lease,
    target: Target,
    attempt: Scope.Scope,
    most: number
  ) => Effect.Effect<B, UpstreamFailure | GatewayError, Scope.Scope>
  /** True for a request that takes no place in the queue: without a free slot its lease fails at once. */
  readonly isImpatient?: boolean
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

/** Counts a failure of the account or its upstream. */
export const countFailure = (lease: Lease, failure: Classification): void => {
  if (!isOfUpstream(failure)) return
  lease.times.failed(lease.upstream)
  lease.work?.failed(failure.class, failure.error.message)
}

/** A failed try of this request. */
interface Failed {
  /** Index of the target. */
  readonly target: number
  readonly failure: Classification
}

/**
 * The targets that a request may go to: those that can carry it, or all, of which the first one's refusal says why none can. A caller's own
 * token goes to one upstream alone; `undefined` if that does not serve the model.
 */
const carrying = <B, A>(
  work: AttemptWork<B, A>,
  accounts: AccountPool,
  { auth }: GatewayConfig
): ReadonlyArray<Target> | undefined => {
  const { caller, route: { targets } } = work
  if (caller._tag === "Direct") {
    const own = targets.filter(({ upstream }) => upstream === auth.direct_upstream)
    return own.length === 0 ? undefined : own.slice(0, 1)
  }
  if (targets.length === 1) return targets
  const able = targets.filter((target) => {
    const driver = accounts.driverOf(target.upstream)
    return target.enabled && driver !== undefined && work.canCarry(driver, target)
  })
  return able.length > 0 ? able : targets
}

const leaseTarget = ({ model, upstream }: Target): LeaseTarget => ({ upstream, model: model.id })

const notOfDirect = gatewayError(
  "model_not_allowed",
  "A token of the upstream serves models of the default upstream alone",
  { param: "model" }
)

/** One request's attempts. */
export class Attempts<B, A> {
  private readonly work: AttemptWork<B, A>
  private readonly options: AttemptOptions
  /** In order. */
  private readonly targets: ReadonlyArray<Target>
  /** Targets that turned out to have no account for the request, or to be unable to carry it. */
  private readonly out = new Set<number>()
  private readonly tries: Array<Failed> = []
  /** Accounts on which this request has failed. */
  private readonly avoid = new Set<string>()
  /** The account to lease again, after its token was replaced. */
  private stay: string | undefined
  /** Accounts whose token was replaced, once each. */
  private readonly refreshed = new Set<string | undefined>()
  private count = 0
  /** Attempts repeated on the same server, or on a target that was tried before. */
  private retries = 0
  /** What the next attempt counts as, unless it goes to another target, which is a failover; `undefined` for a fresh token. */
  private counts: "failovers" | "retries" | undefined
  /** Milliseconds of all attempts, without the queue. */
  private spent = 0
  /** Milliseconds in the queue. */
  private waited = 0
  /** What counts unless a later attempt does: the tokens of the last one that was sent and not refused. */
  private unanswered: TokensSoFar | undefined
  /** What the stats listed as ignored before the first target added to it. */
  private ignored: readonly [ReadonlyArray<string> | undefined, number] | undefined

  constructor(work: AttemptWork<B, A>, options: AttemptOptions) {
    this.work = work
    this.options = options
    this.targets = carrying(work, options.accounts, options.config) ?? []
  }

  /** Attempts until one succeeds or no further attempt is allowed. */
  open(): Effect.Effect<A, GatewayError> {
    if (this.targets.length === 0) return Effect.fail(notOfDirect)
    return this.at(this.isAlone ? undefined : this.targets.map((_, index) => index))
  }

  private get isAlone(): boolean {
    return this.targets.length === 1
  }

  /** Makes an attempt at one of the targets, in order of preference. */
  private at(candidates: ReadonlyArray<number> | undefined): Effect.Effect<A, GatewayError> {
    const { modelLimits } = this.options.accounts
    return modelLimits?.isActive() === true && this.work.caller._tag === "Managed"
      ? this.pastLimits(modelLimits, candidates)
      : this.leased(candidates)
  }

  /** Leaves out the models that their servers limit. If that leaves none, waits until the first of them is taken again. */
  private pastLimits(
    modelLimits: ModelLimits,
    candidates: ReadonlyArray<number> | undefined
  ): Effect.Effect<A, GatewayError> {
    const { config: { upstreams }, deadlines } = this.options
    const { stats } = this.work
    const indices = candidates ?? [0]
    const waits = indices.map((index) => modelLimits.waitFor(leaseTarget(this.targets[index]!)))
    const open = indices.filter((_, place) => waits[place] === 0)
    if (open.length > 0) return this.leased(candidates && open, waits[0] === 0)
    const first = this.targets[indices[0]!]!.upstream
    const most = upstreams.get(first)?.limits.queue ?? 0
    const since = deadlines.now()
    stats.waiting = { for: "queued", since }
    return Effect.matchEffect(modelLimits.pass(Math.min(...waits), this.patience, most), {
      onFailure: (error) => {
        stats.attempts = ++this.count
        return this.withoutLease(error, candidates)
      },
      onSuccess: () => {
        const waited = deadlines.now() - since
        stats.queued += waited
        this.waited += waited
        return this.at(candidates)
      }
    })
  }

  /** Milliseconds that the request may go on waiting. */
  private get patience(): number {
    return this.work.isImpatient === true
      ? 0
      : Math.max(0, this.options.config.request_timeouts.queue * 1_000 - this.waited)
  }

  /** Leases an account of one of the targets, in order of preference, and makes an attempt on it. The first one may hold the request. */
  private leased(candidates: ReadonlyArray<number> | undefined, mayHold = true): Effect.Effect<A, GatewayError> {
    const { accounts, config, deadlines, scope } = this.options
    const { caller, stats } = this.work
    // A request that is over can release nothing.
    if (scope.state._tag === "Closed") return Effect.interrupt
    const attempt = Scope.forkUnsafe(scope)
    this.count++
    stats.attempts = this.count
    stats.driver ??= config.upstreams.get(this.targets[0]!.upstream)?.driver
    stats.waiting = { for: "queued", since: deadlines.now() }
    const leased = Effect.matchEffect(
      accounts.lease(caller, this.leaseOptions(candidates, mayHold)),
      {
        onFailure: (error) => this.withoutLease(error, candidates),
        onSuccess: (lease) => this.on(lease, attempt, candidates)
      }
    )
    return Scope.provide(leased, attempt)
  }

  private leaseOptions(candidates: ReadonlyArray<number> | undefined, mayHold: boolean): LeaseOptions {
    const { avoid, stay } = this
    const { isImpatient = false, route, stats, sticky } = this.work
    const { style } = stats
    if (candidates === undefined) {
      const target = this.targets[0]!
      const patience = isImpatient ? 0 : undefined
      return { avoid, stay, style, sticky, patience, request: stats.id, targets: this.served([target]) }
    }
    const { spread, wait } = route.options
    return {
      avoid,
      stay,
      style,
      sticky,
      spread,
      request: stats.id,
      // Only the first choice may hold the request.
      wait: mayHold && this.tries.length === 0 && !isImpatient ? wait : 0,
      patience: this.patience,
      targets: this.served(candidates.map((index) => this.targets[index]!))
    }
  }

  /** The targets that the configuration in effect still has. */
  private served(targets: ReadonlyArray<Target>): ReadonlyArray<LeaseTarget> {
    return targets.map(leaseTarget).filter(this.options.accounts.serves)
  }

  /** The target of a lease: the first of its upstream that the configuration in effect still has. */
  private indexOf({ upstream }: Lease, candidates: ReadonlyArray<number>): number {
    const ofUpstream = candidates.filter((index) => this.targets[index]!.upstream === upstream)
    const index = ofUpstream.find((index) => this.served([this.targets[index]!]).length > 0)
    return index ?? ofUpstream[0] ?? 0
  }

  /** Goes on without a lease: to targets that were tried before, or to the error. */
  private withoutLease(
    error: GatewayError,
    candidates: ReadonlyArray<number> | undefined
  ): Effect.Effect<A, GatewayError> {
    const last = this.tries.at(-1)
    if (last === undefined) return Effect.fail(error)
    const { stats } = this.work
    if (stats.target !== undefined && stats.waiting !== undefined) {
      // The last one tried answers.
      stats.queued += this.options.deadlines.now() - stats.waiting.since
      stats.waiting = undefined
    }
    const before = last.failure.error
    if (candidates === undefined) {
      return Effect.fail(
        error.code === before.code
          ? gatewayError(error.code, before.message, { retryAfter: error.retryAfter, cause: before.cause })
          : error
      )
    }
    // What was asked for without a try is full or out; a failure that was seen says more.
    this.count--
    for (const index of candidates) if (index !== last.target) this.out.add(index)
    const next = candidates.includes(last.target) || error.code === "rate_limit_exceeded"
      ? undefined
      : this.next(last.failure, undefined)
    return next ?? Effect.fail(errorOfTries(this.tries) ?? error)
  }

  /** Goes on without a target that cannot carry the request. */
  private without(index: number, refused: GatewayError): Effect.Effect<A, GatewayError> {
    this.out.add(index)
    this.count--
    const last = this.tries.at(-1)
    if (last !== undefined) {
      return this.next(last.failure, undefined) ?? Effect.fail(errorOfTries(this.tries) ?? refused)
    }
    const others = this.targets.flatMap((_, other) => this.out.has(other) ? [] : [other])
    return others.length === 0 ? Effect.fail(refused) : this.at(others)
  }

  /** Makes one attempt on a lease, and handles its outcome. */
  private on(
    lease: Lease,
    attempt: Scope.Closeable,
    candidates: ReadonlyArray<number> | undefined
  ): Effect.Effect<A, GatewayError, Scope.Scope> {
    const { accounts: { modelLimits }, config, deadlines, traced } = this.options
    const { work } = this
    const { stats } = work
    const index = candidates === undefined ? 0 : this.indexOf(lease, candidates)
    const target = this.targets[index]!
    stats.queued += lease.waited
    this.waited += lease.waited
    stats.driver = lease.driver.name
    stats.accountHash = lease.accountHash
    const others = candidates?.filter((other) => other !== index) ?? []
    if (others.length > 0 && this.hasFailedOn(lease, index)) {
      this.count--
      return Effect.andThen(Scope.close(attempt, Exit.void), Effect.suspend(() => this.at(others)))
    }
    stats.recording?.leased(lease.identifier)
    const refused = this.refused(lease, target)
    if (refused !== undefined) {
      return candidates === undefined
        ? Effect.fail(refused)
        : Effect.andThen(Scope.close(attempt, Exit.void), Effect.suspend(() => this.without(index, refused)))
    }
    const counts = this.tries.length > 0 && this.tries.at(-1)!.target !== index ? "failovers" : this.counts
    if (counts !== undefined) stats[counts]++
    stats.upstreamCalled = true
    const began = deadlines.now()
    const recorded = this.record(lease, target, began)
    lease.times.began(lease.upstream)
    lease.work?.began()
    stats.waiting = { for: "upstream", since: began }
    const over = () => {
      const took = deadlines.now() - began
      stats.waiting = undefined
      stats.upstream += took
      this.spent += took
      if (recorded !== undefined) recorded.took = took
    }
    const left = Math.max(1, config.request_timeouts.attempts * 1000 - this.spent)
    const untried = this.targets.filter((_, other) => !this.out.has(other) && !this.hasTried(other)).length
    const most = this.isAlone ? left : shareOfTime(left, untried)
    const run = (span: AttemptSpan) =>
      Effect.matchEffect(span.inSpan(work.begin(lease, target, attempt, most)), {
        onSuccess: (begun) => {
          over()
          const first = (stats.firstEventAt ?? deadlines.now()) - began
          lease.times.answered(lease.upstream, first)
          if (modelLimits?.isActive() === true) modelLimits.answered(leaseTarget(target))
          if (recorded !== undefined) recorded.took = first
          return work.output(begun, lease, attempt, span)
        },
        onFailure: (failure) => {
          over()
          return this.failed(failure, lease, index, attempt, span, recorded)
        }
      })
    return traced && work.span !== undefined
      ? Effect.flatMap(Scope.provide(work.span(lease, this.count), attempt), run)
      : run(untraced)
  }

  /** Notes what the driver does not send. A request has the same driver in all of its attempts at one target. */
  private refused(lease: Lease, target: Target): GatewayError | undefined {
    const { stats } = this.work
    if (this.isAlone) return this.count > 1 ? undefined : this.work.refuse(lease.driver, target)
    this.ignored ??= [stats.ignored?.slice(), stats.ignoredMore]
    const [ignored, more] = this.ignored
    stats.ignored = ignored?.slice()
    stats.ignoredMore = more
    return this.work.refuse(lease.driver, target)
  }

  /** True if the target has no account left on which the request has not failed. The next target comes first. */
  private hasFailedOn({ account }: Lease, index: number): boolean {
    return account !== undefined && this.avoid.has(account) && this.tries.at(-1)?.target === index
  }

  private hasTried(index: number): boolean {
    return this.tries.some(({ target }) => target === index)
  }

  private record(lease: Lease, { model, upstream }: Target, began: number): RecordedTry | undefined {
    const { stats } = this.work
    const { showsUpstreams } = this.options.config.route_table
    if (showsUpstreams) stats.target = { upstream, model: model.id }
    // Metrics read the tries of several upstreams, and records those of every request.
    if (!showsUpstreams && stats.recording === undefined) return undefined
    const recorded: RecordedTry = {
      upstream,
      model: model.id,
      account: lease.identifier ?? "",
      cause: undefined,
      status: undefined,
      queued: lease.waited,
      began: began - stats.startedAt,
      took: undefined
    }
    const tries = stats.tries ??= []
    tries.push(recorded)
    return recorded
  }

  /** True if there is at most one account: another attempt would repeat the same request. */
  private hasOneAccount(upstream: string): boolean {
    const { accounts } = this.options.config
    const isOne = ({ disabled, upstream: of }: Account) => of === upstream && !disabled
    return accounts.findIndex(isOne) === accounts.findLastIndex(isOne)
  }

  /** Handles a failure before anything was sent: reports it to the pool, then retries or fails. */
  private failed(
    failure: UpstreamFailure | GatewayError,
    lease: Lease,
    target: number,
    attempt: Scope.Closeable,
    span: AttemptSpan,
    recorded: RecordedTry | undefined
  ): Effect.Effect<A, GatewayError> {
    const { caller, stats } = this.work
    // The client has disconnected, which may have caused the failure.
    if (attempt.state._tag === "Closed") return Effect.interrupt
    if (failure._tag === "GatewayError") {
      span.failed(failure.code)
      if (recorded !== undefined) recorded.cause = failure.code
      return Effect.fail(failure)
    }
    const judged = classify(failure, {
      direct: caller._tag === "Direct",
      mayRefresh: !this.refreshed.has(lease.account) && lease.driver.login !== undefined,
      shown: false,
      alone: this.hasOneAccount(lease.upstream),
      keyless: lease.isKeyless,
      secrets: lease.secrets()
    })
    span.failed(judged.error.code)
    countFailure(lease, judged)
    if (recorded !== undefined) {
      recorded.cause = judged.class
      recorded.status = failure.status
    }
    this.tries.push({ target, failure: judged })
    noteFailure(stats, judged.error.cause)
    const refresh = judged.retry === "here_after_refresh"
    const next = Effect.suspend((): Effect.Effect<A, GatewayError> => {
      this.keepTokens()
      return this.next(judged, lease) ??
        Effect.fail(this.isAlone ? judged.error : errorOfTries(this.tries) ?? judged.error)
    })
    const fault = upstreamFault(failure, judged.class)
    if (fault === "connection" || refusesRequest(failure)) stats.soFar = this.unanswered
    // Of an upstream in trouble, only a 503 says when it is back.
    const retryAfter = fault === undefined || failure.status === 503 ? judged.retryAfter : undefined
    const { modelLimits } = this.options.accounts
    const limited = modelLimits !== undefined && lease.isKeyless && judged.class === "rate_limited"
      ? modelLimits.limited(leaseTarget(this.targets[target]!), lease.driver, judged.retryAfter)
      : Effect.void
    // The pool learns of the failure before the slot is free: a waiter must not get the failed account.
    return lease.report(judged.health, retryAfter, fault).pipe(
      Effect.andThen(limited),
      Effect.andThen(refresh ? lease.refreshToken : Effect.void),
      Effect.andThen(Scope.close(attempt, Exit.void)),
      Effect.andThen(next)
    )
  }

  /** Keeps the tokens of a failed attempt without its reply. The attempt is closed. */
  private keepTokens(): void {
    const { stats } = this.work
    const { soFar, target } = stats
    const usage = soFar?.usage()
    const isEstimated = soFar?.estimated() ?? true
    this.unanswered = usage === undefined
      ? undefined
      : { usage: () => usage, estimated: () => isEstimated, target: soFar?.target ?? target }
    stats.soFar = this.unanswered
  }

  /** The next attempt after a failure; `undefined` if the request fails. */
  private next(failure: Classification, lease: Lease | undefined): Effect.Effect<A, GatewayError> | undefined {
    const { caller, route } = this.work
    const { config } = this.options
    const last = this.tries.at(-1)!
    const upstream = this.targets[last.target]!.upstream
    const isOver = this.work.isSpent?.() === true || this.spent >= config.request_timeouts.attempts * 1000
    if (isOver) return undefined
    const next = nextTry({
      targets: this.targets.length,
      tries: this.tries,
      hasAccount: this.isAlone || this.hasOtherAccount(upstream, lease?.account),
      alsoOn: route.options.alsoOn,
      isPinned: caller._tag === "Managed" && caller.target !== undefined,
      out: this.out
    })
    if (next._tag === "end") return undefined
    const candidates = this.isAlone
      ? undefined
      : next._tag === "refresh"
      ? [next.target]
      : this.candidatesFrom(next.target)
    if (next._tag === "refresh") {
      this.counts = undefined
      this.refreshed.add(lease?.account)
      this.stay = lease?.account
      return this.at(candidates)
    }
    this.stay = undefined
    const isRepeated = next.target === last.target && this.hasOneAccount(upstream)
    if (isRepeated || (!this.isAlone && this.hasTried(next.target) && next._tag === "target")) {
      this.retries++
      this.counts = "retries"
      // A failure that takes the account out of rotation has a delay of its own.
      return failure.health === "none"
        ? Effect.andThen(retryDelay(this.retries), Effect.suspend(() => this.at(candidates)))
        : this.at(candidates)
    }
    if (lease?.account !== undefined) this.avoid.add(lease.account)
    this.counts = "failovers"
    return this.at(candidates)
  }

  /** The target of the next try, and those not tried yet that serve it as well. */
  private candidatesFrom(target: number): ReadonlyArray<number> {
    const untried = this.targets.flatMap((_, index) =>
      index === target || this.out.has(index) || this.hasTried(index) ? [] : [index]
    )
    return [target, ...untried]
  }

  /** True if the configuration has an account of the upstream on which the request has not failed. */
  private hasOtherAccount(upstream: string, account: string | undefined): boolean {
    const { accounts } = this.options.config
    const isAvoided = (key: string) => key === account || this.avoid.has(key)
    return accounts.some((other) => other.upstream === upstream && !other.disabled && !isAvoided(other.identity[0]!))
  }
}
