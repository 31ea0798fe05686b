/**
 * Where a request goes next, and why not elsewhere: one pure decision over the targets of its route and what it has tried.
 *
 * A failure of an account moves on to another account of the target; a failure of the target moves on to the next target. Targets that
 * were not tried yet come first, in order; after them the tries go round, but not to a target that failed for good. A prompt that is too long
 * for a known window goes to the next target with a larger one. Targets that bind the request's strict schema come before the others.
 *
 * This folder is all of where requests go. `place` orders the targets of a request. `Pools` holds the slots of all upstreams and grants one of
 * them in that order (`PoolState` of one upstream, `poolQueue` the requests that wait); `needs` says which accounts suit a request, and is asked
 * in the step of the grant. `choice` orders the accounts of an upstream, `targetShares` the targets of a weighted route. None of them has a
 * clock, randomness or Effects. Who calls, and with what right, is in `accounts`, which drives them.
 */
import type { Account } from "../config/Account.ts"
import type { Classification } from "../domain/classifyUpstreamFailure.ts"
import { fitting } from "../domain/fits.ts"
import { type AlsoOn, refusals } from "../domain/tries.ts"

/** Most tries of one target. */
export const mostTriesOfTarget = 3

/** Most tries of one request. */
export const mostTries = 8

/**
 * Whose credential a target gets for a request. `not_allowed`: the caller's own token goes to another upstream. `login_required`: the request
 * has no credential that the target takes.
 */
export type Right = "account" | "login" | "not_allowed" | "login_required"

/**
 * Why a target does not get a request next. `not_binding`: it is not known to bind the request's strict schema, which its route requires.
 * `cannot_serve`: its driver or its model does not take the request. `failed`: it has failed for this request, for good or too often, or the
 * failure of another one ends the request. `out`: it had no account for the request.
 */
export type Reason =
  | Exclude<Right, "account" | "login">
  | "not_binding"
  | "disabled"
  | "cannot_serve"
  | "too_long"
  | "failed"
  | "out"

/** A target of a route, as a request finds it. */
export interface PlacedTarget {
  readonly upstream: string
  readonly right: Right
  readonly isEnabled: boolean
  readonly canServe: boolean
  /** Its replies fit the request's strict schema. True of every target for a request without one. */
  readonly binds: boolean
  /** The window of its model in tokens; `undefined` for an unknown one. */
  readonly window: number | undefined
}

/** A failed try of a request. */
export interface FailedTry {
  /** Index of the target. */
  readonly target: number
  readonly failure: Classification
}

/** What a request has tried. */
export interface Tried {
  /** The latest last. */
  readonly tries: ReadonlyArray<FailedTry>
  /** Targets that turned out to have no account for the request, or to be unable to serve it. */
  readonly out: ReadonlySet<number>
  /** Accounts on which this request has failed. */
  readonly avoid: ReadonlySet<string>
  /** Accounts whose token was replaced, once each. */
  readonly refreshed: ReadonlySet<string | undefined>
  /** Attempts repeated on the same server, or on a target that was tried before. */
  readonly retries: number
}

/** What a request may choose from. */
export interface PlaceRequest {
  /** Of its route, in order. */
  readonly targets: ReadonlyArray<PlacedTarget>
  /** The order in which a request of a `weighted` route begins; `undefined` for that of the route. */
  readonly turn: ReadonlyArray<number> | undefined
  /** The estimated tokens of its prompt, and those that it asks for; `undefined` where windows do not decide. */
  readonly size: { readonly prompt: number; readonly output: number } | undefined
  readonly alsoOn: ReadonlyArray<AlsoOn>
  /** No target but those that bind the request's strict schema serves it. */
  readonly mustBind: boolean
  /** The request is pinned to an account: no other account or target serves it. */
  readonly isPinned: boolean
  /** The accounts when the request started. */
  readonly accounts: ReadonlyArray<Pick<Account, "disabled" | "identity" | "upstream">>
}

/** Where an attempt may go. */
export interface Placement {
  /** Indices of targets in order of preference; empty if the request fails. */
  readonly order: ReadonlyArray<number>
  /** The other targets. */
  readonly excluded: ReadonlyArray<{ readonly target: number; readonly reason: Reason }>
  /** The account to lease again, after its token was replaced. */
  readonly stay: string | undefined
  /** What the attempt counts as, unless it goes to another target, which is a failover; `undefined` for the first one. */
  readonly counts: "failovers" | "retries" | undefined
  /** The number of the retry, from 1, before which the request waits; `undefined` if it does not wait. */
  readonly pauses: number | undefined
  /** What the request has tried then. */
  readonly tried: Tried
}

/** What a request has tried before its first attempt. */
export const nothingTried: Tried = {
  tries: [],
  out: new Set(),
  avoid: new Set(),
  refreshed: new Set(),
  retries: 0
}

/** Adds a failed try of a target. */
export const failedAt = (tried: Tried, target: number, failure: Classification): Tried => ({
  ...tried,
  tries: [...tried.tries, { target, failure }]
})

/** Adds targets that have no account for the request, or cannot serve it. */
export const leavingOut = (tried: Tried, targets: ReadonlyArray<number>): Tried => ({
  ...tried,
  out: new Set([...tried.out, ...targets])
})

/** True if an upstream has at most one account: another attempt would repeat the same request. */
export const hasOneAccount = (accounts: PlaceRequest["accounts"], name: string): boolean => {
  const isOne = ({ disabled, upstream }: PlaceRequest["accounts"][number]) => upstream === name && !disabled
  return accounts.findIndex(isOne) === accounts.findLastIndex(isOne)
}

/** The target of an order that the request has failed on last: others come before the accounts that it has failed on. */
export const failedLast = ({ tries }: Tried, order: ReadonlyArray<number>): number | undefined => {
  const last = tries.at(-1)?.target
  return last !== undefined && order.length > 1 && order.includes(last) ? last : undefined
}

/** The targets of an order that bind the request's strict schema, and the others. */
export const byBinding = (
  { targets }: Pick<PlaceRequest, "targets">,
  order: ReadonlyArray<number>
): readonly [binding: ReadonlyArray<number>, others: ReadonlyArray<number>] => [
  order.filter((index) => targets[index]!.binds),
  order.filter((index) => !targets[index]!.binds)
]

/**
 * The targets that can serve a request, or all that it may use, of which the first one's refusal says why none can: in order, those that bind its
 * strict schema first.
 */
const ableOf = (
  { mustBind, size, targets }: PlaceRequest,
  reasons: Map<number, Reason>
): ReadonlyArray<number> => {
  const without = (all: ReadonlyArray<number>, reasonOf: (target: PlacedTarget) => Reason | undefined) =>
    all.filter((index) => {
      const reason = reasonOf(targets[index]!)
      if (reason !== undefined) reasons.set(index, reason)
      return reason === undefined
    })
  const ofCaller = without(
    targets.map((_, index) => index),
    ({ right }) => right === "account" || right === "login" ? undefined : right
  )
  const allowed = mustBind
    ? without(ofCaller, ({ binds }) => binds ? undefined : "not_binding")
    : byBinding({ targets }, ofCaller).flat()
  const isAble = ({ canServe, isEnabled }: PlacedTarget) => isEnabled && canServe
  if (allowed.length < 2 || !allowed.some((index) => isAble(targets[index]!))) return allowed
  const able = without(
    allowed,
    (target) => isAble(target) ? undefined : target.isEnabled ? "cannot_serve" : "disabled"
  )
  if (able.length < 2 || size === undefined) return able
  const fits = fitting(able.map((index) => targets[index]!.window), size.prompt, size.output).map((place) =>
    targets[able[place]!]
  )
  return without(able, (target) => fits.includes(target) ? undefined : "too_long")
}

/**
 * Decides where a request goes, after a failure on `account`, or on none. A server that is asked again immediately gets a pause, unless the
 * failure takes the account out of rotation, which has a delay of its own. O(tries × targets), both of which are bounded.
 */
export const place = (request: PlaceRequest, tried: Tried, account: string | undefined): Placement => {
  const { accounts, alsoOn, isPinned, targets, turn } = request
  const { avoid, out, tries } = tried
  const reasons = new Map<number, Reason>()
  const able = ableOf(request, reasons)
  const triesOf = (index: number) => tries.filter(({ target }) => target === index).length
  const untried = able.filter((index) => triesOf(index) === 0 && !out.has(index))
  const to = (order: ReadonlyArray<number>, step: Partial<Placement> = {}): Placement => ({
    order,
    excluded: targets.flatMap((_, target) =>
      order.includes(target)
        ? []
        : [{ target, reason: reasons.get(target) ?? (out.has(target) && triesOf(target) === 0 ? "out" : "failed") }]
    ),
    stay: undefined,
    counts: undefined,
    pauses: undefined,
    tried,
    ...step
  })
  const last = tries.at(-1)
  if (last === undefined) return to(turn?.filter((index) => untried.includes(index)) ?? untried)
  const { failure, target } = last
  const { upstream } = targets[target]!
  const hasTry = triesOf(target) < mostTriesOfTarget

  /** The next target. `isOther`: another one than before, or another account of the same one. */
  const on = (next: number | undefined, isOther = false): Placement => {
    if (next === undefined) return to([])
    const order = [next, ...untried.filter((index) => index !== next)]
    const isRepeated = next === target && hasOneAccount(accounts, upstream)
    const isTriedAgain = able.length > 1 && !isOther && triesOf(next) > 0
    if (!isRepeated && !isTriedAgain) {
      return to(order, {
        counts: "failovers",
        tried: account === undefined ? tried : { ...tried, avoid: new Set([...avoid, account]) }
      })
    }
    const retries = tried.retries + 1
    return to(order, {
      counts: "retries",
      pauses: failure.health === "none" ? retries : undefined,
      tried: { ...tried, retries }
    })
  }

  if (tries.length >= mostTries) return to([])
  if (failure.retry === "here_after_refresh" && hasTry) {
    return to([target], { stay: account, tried: { ...tried, refreshed: new Set([...tried.refreshed, account]) } })
  }
  if (isPinned) return to([])
  if (failure.next === "end") {
    const refusal = refusals.get(failure.class)
    const window = failure.class === "prompt_too_long" ? targets[target]!.window : undefined
    const larger = window === undefined
      ? undefined
      : untried.find((index) => (targets[index]!.window ?? 0) > window)
    return on(larger ?? (refusal !== undefined && alsoOn.includes(refusal) ? untried[0] : undefined))
  }
  // The pool knows which accounts are in rotation; the only target of a request is asked for one in any case.
  const hasOther = able.length === 1 || accounts.some((other) => {
    const [key = ""] = other.identity
    return other.upstream === upstream && !other.disabled && key !== account && !avoid.has(key)
  })
  if (failure.next === "account" && hasOther && hasTry) return on(target, true)
  if (untried.length > 0) return on(untried[0])
  const from = able.indexOf(target) + 1
  const round = [...able.slice(from), ...able.slice(0, from)]
  return on(round.find((index) =>
    !out.has(index) && triesOf(index) < mostTriesOfTarget &&
    tries.findLast((attempt) => attempt.target === index)?.failure.retry !== "no"
  ))
}
