/**
 * The attempts of one request, one after another, until one succeeds or none is left.
 *
 * Completions, embeddings and relayed requests make the same attempts. Nothing has been sent before an attempt's output, so an
 * earlier failure may be retried: on another account of the target, or on another target of the route (`placement/place.ts`).
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { type AccountPool, anywhere, type Caller, type Lease, type PlacementRequest } from "../accounts/Accounts.ts"
import { hasBudgets } from "../accounts/budgets.ts"
import { rightTo } from "../accounts/Callers.ts"
import type { Deadlines } from "../config/clock/Deadlines.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { type Target, targetName } from "../domain/routes.ts"
import { errorOfTries, errorWithoutAccount, shareOfTime } from "../domain/tries.ts"
import {
  byBinding,
  failedAt,
  failedLast,
  leavingOut,
  nothingTried,
  place,
  type PlacedTarget,
  type Placement,
  type PlaceRequest,
  type Tried
} from "../placement/place.ts"
import { sharesOf, type TargetShares, type Turn } from "../placement/targetShares.ts"
import { Attempt, type AttemptWork, leaseTarget } from "./Attempt.ts"
import type { AttemptSpan } from "./attemptSpan.ts"
import { AttemptsRecord } from "./AttemptsRecord.ts"
import { noLogin, notOfDirect } from "./noCredential.ts"
import { isRehearsed, otherRoute, rehearsedFailure } from "./Rehearsal.ts"
import type { ExcludedTarget } from "./RequestStats.ts"
import { retryDelay } from "./retryDelay.ts"
import { ServerWords } from "./serverWords.ts"
import { TryBudget } from "./TryBudget.ts"

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

/** What a request may choose from. What only several targets need is looked at where there are several. */
const placeRequestOf = <B, A>(
  work: AttemptWork<B, A>,
  accounts: AccountPool,
  config: GatewayConfig
): PlaceRequest => {
  const { caller, request: { style }, route: { options, targets } } = work
  const isAlone = targets.length < 2
  const mustBind = options.schemas === "required"
  const schema = isAlone && !mustBind ? undefined : work.schema
  const windows = isAlone ? [] : work.windowsOf(targets)
  const placed = targets.map((target, index): PlacedTarget => {
    const driver = isAlone ? undefined : accounts.driverOf(target.upstream)
    return {
      upstream: target.upstream,
      right: rightTo(caller, style, target, targets, config),
      isEnabled: target.enabled,
      canServe: driver !== undefined && work.canServe(driver, target),
      binds: schema === undefined || schema.isBoundBy(target),
      window: windows[index]
    }
  })
  const logins = new Set(placed.flatMap(({ right, upstream }) => right === "login" ? [upstream] : []))
  return {
    targets: placed,
    turn: undefined,
    size: isAlone ? undefined : work.size(),
    alsoOn: options.alsoOn,
    mustBind,
    isPinned: caller._tag === "Managed" && caller.target !== undefined,
    accounts: logins.size === 0 ? config.accounts : config.accounts.filter(({ upstream }) => !logins.has(upstream))
  }
}

/** One request's attempts. */
export class Attempts<B, A> {
  readonly #work: AttemptWork<B, A>
  readonly #options: AttemptOptions
  /** Of the route, in order. */
  readonly #targets: ReadonlyArray<Target>
  /** The first placement: its order has all targets that the request may go to. */
  readonly #first: Placement
  #choice: PlaceRequest
  readonly #record: AttemptsRecord
  readonly #words: ServerWords
  #tried = nothingTried
  /** The request's turn at the targets of a route whose `spread` is `weighted`. */
  #turn: Turn | undefined
  /** What the attempt that leases or runs uses of budgets; `undefined` where nothing has one. */
  #budget: TryBudget | undefined
  #count = 0
  /** Milliseconds of all attempts, without the queue. */
  #spent = 0
  /** Milliseconds in the queue. */
  #waited = 0
  /** When the first try failed, in monotonic milliseconds. */
  #failedAt: number | undefined

  constructor(work: AttemptWork<B, A>, options: AttemptOptions) {
    const { accounts, config, deadlines } = options
    const { caller, request, route } = work
    this.#work = work
    this.#options = options
    this.#targets = route.targets
    const choice = placeRequestOf(work, accounts, config)
    this.#first = place(choice, nothingTried, undefined)
    const upstreams = this.#first.order.map((index) => choice.targets[index]!.upstream)
    // A login is the only one of its caller: its target gets one try.
    const isOnlyLogin = upstreams.length === 1 &&
      this.#first.order.some((index) => choice.targets[index]!.right === "login")
    this.#choice = isOnlyLogin ? { ...choice, isPinned: true } : choice
    this.#words = new ServerWords(config, caller, upstreams, request.errorFamily)
    this.#record = new AttemptsRecord(request, deadlines, config.route_table.showsUpstreams)
  }

  /** Attempts until one succeeds or no other attempt is allowed. */
  open(): Effect.Effect<A, GatewayError> {
    const { request: { rehearsal }, route, schema } = this.#work
    if (rehearsal !== undefined && rehearsal.route !== route.id) return Effect.fail(otherRoute(rehearsal, route.id))
    const { excluded, order } = this.#first
    if (excluded.length > 0) this.#excludes(excluded)
    if (order.length === 0) {
      if (schema !== undefined && excluded.some(({ reason }) => reason === "not_binding")) {
        return Effect.fail(schema.unbound())
      }
      return Effect.fail(excluded[0]?.reason === "not_allowed" ? notOfDirect(route) : noLogin)
    }
    return route.options.spread === "weighted" && !this.#isAlone && rehearsal === undefined
      ? this.#openWeighted(sharesOf(route))
      : this.#at(this.#first)
  }

  /** Attempts that begin at the target whose turn it is. It counts for the one that serves, or for none. */
  #openWeighted(shares: TargetShares): Effect.Effect<A, GatewayError> {
    return Effect.suspend(() => {
      const [binding, others] = byBinding(this.#choice, this.#first.order)
      const [order, later] = binding.length === 0 ? [others, []] : [binding, others]
      const turn = shares.take(order.map((index) => this.#targets[index]!))
      this.#turn = turn
      this.#choice = { ...this.#choice, turn: [...turn.order.map((place) => order[place]!), ...later] }
      return Effect.onExit(this.#at(place(this.#choice, this.#tried, undefined)), () => Effect.sync(turn.over))
    })
  }

  get #isAlone(): boolean {
    return this.#first.order.length === 1
  }

  /** Makes an attempt at one of the targets, in order of preference. */
  #at(step: Placement): Effect.Effect<A, GatewayError> {
    this.#work.request.held.countsReply = true
    const [first] = step.order
    if (first !== undefined && this.#isRehearsed(first)) return this.#rehearse(first)
    return this.#leased(step)
  }

  #isRehearsed(index: number): boolean {
    const { rehearsal } = this.#work.request
    return rehearsal !== undefined && isRehearsed(rehearsal, this.#targets[index])
  }

  /** Fails at a target of a rehearsal. */
  #rehearse(index: number): Effect.Effect<A, GatewayError> {
    const target = this.#targets[index]!
    const failure = rehearsedFailure(this.#words.naming(target))
    this.#record.rehearsed(target, failure)
    this.#excludes([{ target: index, reason: "rehearsed" }])
    this.#tried = failedAt(this.#tried, index, failure)
    return this.#next(undefined, failure.error)
  }

  #hasWaited(millis: number): void {
    this.#record.waited(millis)
    this.#waited += millis
  }

  /** Milliseconds that the request may go on waiting. */
  get #patience(): number {
    return this.#work.isImpatient
      ? 0
      : Math.max(0, this.#options.config.request_timeouts.queue * 1_000 - this.#waited)
  }

  /** Leases an account of one of the targets, in order of preference, and makes an attempt on it. The first one may hold the request. */
  #leased(wanted: Placement): Effect.Effect<A, GatewayError> {
    const { first, later } = this.#leasable(wanted.order)
    const step = { ...wanted, order: first }
    const { accounts, config, scope } = this.#options
    // A request that is over can release nothing.
    if (scope.state._tag === "Closed") return Effect.interrupt
    const attempt = Scope.forkUnsafe(scope)
    this.#count++
    this.#record.queued(this.#count, config.upstreams.get(this.#targets[this.#first.order[0]!]!.upstream)?.driver)
    const leased = Effect.matchEffect(
      accounts.lease(this.#callerFor(step), this.#leaseOptions(step)),
      {
        onFailure: (error) => later.length === 0 ? this.#withoutLease(error, step) : this.#past(step, later),
        onSuccess: (lease) => this.#on(lease, attempt, step)
      }
    )
    return Scope.provide(leased, attempt)
  }

  /**
   * The first order with the same kind of credential, and those that come later. A login goes to one target at a time. What a rehearsal
   * makes fail is not leased.
   */
  #leasable(order: ReadonlyArray<number>) {
    const kept = this.#work.request.rehearsal === undefined ? order : order.filter((index) => !this.#isRehearsed(index))
    const isLogin = this.#isLogin(kept[0])
    const first = isLogin ? kept.slice(0, 1) : kept.filter((index) => !this.#isLogin(index))
    return { first, later: order.filter((index) => !first.includes(index)) }
  }

  /** Whether a target gets the caller's own login. */
  #isLogin(index: number | undefined): boolean {
    return index !== undefined && this.#choice.targets[index]!.right === "login"
  }

  /** The caller of a lease: one with a token of its own where a target gets its login. */
  #callerFor({ order }: Placement): Caller {
    const { caller } = this.#work
    if (caller._tag === "Direct" || caller.login === undefined) return caller
    if (!this.#isLogin(order[0])) return caller
    return { _tag: "Direct", owner: caller.owner, token: caller.login, isLogin: true }
  }

  /** Goes on to later order, since those before them have no slot for the request. */
  #past({ order }: Placement, later: ReadonlyArray<number>): Effect.Effect<A, GatewayError> {
    this.#count--
    this.#tried = leavingOut(this.#tried, order)
    return this.#at({ ...this.#first, order: later, tried: this.#tried })
  }

  #leaseOptions({ order, stay }: Placement): PlacementRequest {
    const { caller, isImpatient, memory, prefers, request: { id, rehearsal, style }, route } = this.#work
    // The conversation of a rehearsal stays where it was.
    const known = rehearsal === undefined ? this.#work.sticky : undefined
    // What binds the request's schema comes first, whatever the route or the conversation prefers.
    const isFree = byBinding(this.#choice, order).some((part) => part.length === order.length)
    const sticky = known === undefined || isFree ? known : { ...known, prefersTarget: false }
    const { avoid, tries } = this.#tried
    this.#budget = this.#budgetOf(caller)
    const { spread, wait } = route.options
    const failed = failedLast(this.#tried, order)
    // Only the first choice may hold the request.
    const holds = !this.#isAlone && tries.length === 0 && !isImpatient
    return {
      ...anywhere,
      request: id,
      style: style ?? "",
      model: route.id,
      targets: order.map((index) => leaseTarget(this.#targets[index]!)),
      spread: spread === "even" && isFree && !this.#isAlone ? spread : "order",
      wait: holds ? wait : 0,
      patience: this.#isAlone && !isImpatient ? undefined : this.#patience,
      avoid,
      failed: failed === undefined ? undefined : leaseTarget(this.#targets[failed]!),
      stay,
      sticky,
      prefers: prefers ?? [],
      memory,
      budget: this.#budget
    }
  }

  /** What the next attempt uses of budgets. A caller's own credential has none. */
  #budgetOf({ _tag }: Caller): TryBudget | undefined {
    const { config } = this.#options
    const { request: { stats }, route } = this.#work
    return _tag === "Direct" || !hasBudgets(config)
      ? undefined
      : new TryBudget(config, route, stats, this.#work.budgeted())
  }

  /** The target of a lease. */
  #indexOf({ model, upstream }: Lease, order: ReadonlyArray<number>): number {
    const ofUpstream = order.filter((index) => this.#targets[index]!.upstream === upstream)
    return ofUpstream.find((index) => this.#targets[index]!.model.id === model) ?? ofUpstream[0] ?? order[0]!
  }

  /** Records the targets before the one that was leased that the pool had no slot of. */
  #passedOver(order: ReadonlyArray<number>, leased: number): void {
    const { accounts } = this.#options
    this.#excludes(
      order.slice(0, order.indexOf(leased)).flatMap((target) => {
        const isFailed = target === failedLast(this.#tried, order)
        const reason = accounts.hindrance(leaseTarget(this.#targets[target]!)) ?? (isFailed ? "failed" : undefined)
        return reason === undefined ? [] : [{ target, reason }]
      })
    )
  }

  /** Records targets that do not get the request. */
  #excludes(targets: ReadonlyArray<{ readonly target: number; readonly reason: ExcludedTarget["reason"] }>): void {
    this.#record.excludes(
      targets.map(({ reason, target }) => ({ target: targetName(this.#targets[target]!), reason }))
    )
  }

  /** Goes on without a lease: to targets that were tried before, or to the error. */
  #withoutLease(error: GatewayError, { order }: Placement): Effect.Effect<A, GatewayError> {
    const last = this.#tried.tries.at(-1)
    if (last === undefined) return Effect.fail(error)
    this.#record.leftQueue()
    if (this.#isAlone) {
      if (error.code !== last.failure.error.code) return Effect.fail(error)
      const elapsed = (this.#options.deadlines.now() - (this.#failedAt ?? 0)) / 1_000
      return Effect.fail(errorWithoutAccount(this.#tried.tries, error.retryAfter, elapsed) ?? error)
    }
    // What was asked for without a try is full or out; a failure that was seen says more.
    this.#count--
    this.#tried = leavingOut(this.#tried, order.filter((index) => index !== last.target))
    // The accounts that it has failed on serve it now that no other target does.
    const isOut = order.includes(last.target) && failedLast(this.#tried, order) === undefined
    const isOver = isOut || error.code === "rate_limit_exceeded"
    return isOver ? Effect.fail(errorOfTries(this.#tried.tries) ?? error) : this.#next(undefined, error)
  }

  /** Makes one attempt on a lease, and handles its outcome. */
  #on(
    lease: Lease,
    scope: Scope.Closeable,
    step: Placement
  ): Effect.Effect<A, GatewayError, Scope.Scope> {
    const options = this.#options
    const record = this.#record
    const work = this.#work
    const { config, deadlines, traced } = options
    const index = this.#indexOf(lease, step.order)
    const target = this.#targets[index]!
    this.#hasWaited(lease.waited)
    record.leased(lease)
    record.takes(lease)
    if (step.order[0] !== index) this.#passedOver(step.order, index)
    const refused = this.#refused(lease, target)
    if (refused !== undefined) {
      return this.#isAlone
        ? Effect.fail(refused)
        : Effect.andThen(Scope.close(scope, Exit.void), Effect.suspend(() => this.#without(index, refused)))
    }
    const choice = this.#choice
    const tried = this.#tried
    const isOnOther = tried.tries.length > 0 && tried.tries.at(-1)!.target !== index
    const began = deadlines.now()
    this.#turn?.servedBy(target)
    record.called(lease, target, isOnOther ? "failovers" : step.counts, began)
    if (this.#budget !== undefined) this.#budget.target = target
    if (this.#budget?.isStrict === true) work.bounded()
    const left = Math.max(1, config.request_timeouts.attempts * 1000 - this.#spent)
    const attempt = new Attempt(
      work,
      {
        lease,
        target,
        scope,
        began,
        most: this.#isAlone ? left : shareOfTime(left, this.#untried(tried)),
        accounts: choice.accounts,
        tried,
        words: this.#words
      },
      deadlines,
      record
    )
    const run = (span: AttemptSpan | undefined) =>
      attempt.run(span, (failure, took) => {
        this.#spent += took
        this.#failedAt ??= deadlines.now()
        const failed = failedAt(tried, index, failure)
        this.#tried = this.#isLogin(index) ? leavingOut(failed, [index]) : failed
        return this.#next(lease.account?.key, failure.error)
      })
    return traced
      ? Effect.flatMap(Scope.provide(work.span(lease, target, this.#count), scope), run)
      : run(undefined)
  }

  /** Notes what the driver does not send. A request has the same driver in all of its attempts at one target. */
  #refused(lease: Lease, target: Target): GatewayError | undefined {
    if (this.#isAlone && this.#count > 1) return undefined
    if (!this.#isAlone) this.#record.choosesTarget()
    return this.#work.refuse(lease.driver, target)
  }

  /** The targets that were not tried and may be. */
  #untried({ out, tries }: Tried): number {
    return this.#first.order.filter((index) => !out.has(index) && !tries.some(({ target }) => target === index)).length
  }

  /** Goes on without a target that cannot serve the request. */
  #without(index: number, refused: GatewayError): Effect.Effect<A, GatewayError> {
    this.#tried = leavingOut(this.#tried, [index])
    this.#count--
    return this.#next(undefined, refused)
  }

  /** The next attempt after a failure on an account, or on none. Without one, the request fails with what its tries say, or else `error`. */
  #next(account: string | undefined, error: GatewayError): Effect.Effect<A, GatewayError> {
    const isOver = this.#work.isSpent() ||
      this.#spent >= this.#options.config.request_timeouts.attempts * 1000
    const step = isOver ? undefined : place(this.#choice, this.#tried, account)
    if (step === undefined || step.order.length === 0) {
      return Effect.fail(this.#isAlone ? error : errorOfTries(this.#tried.tries) ?? error)
    }
    this.#tried = step.tried
    return step.pauses === undefined
      ? this.#at(step)
      : Effect.andThen(retryDelay(step.pauses), Effect.suspend(() => this.#at(step)))
  }
}
