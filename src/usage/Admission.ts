/**
 * The state of a key, which is its running requests and what it has used of its windows, and one request's share in it:
 * reserved at admission, replaced by the actual use at the end.
 */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { KeyLimit, WindowName } from "../config/windowLimit.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Route } from "../domain/routes.ts"
import { windowNames } from "../domain/windowNames.ts"
import type { KeyCounters } from "./Batch.ts"
import { type Exceeded, type RateLimits, type Remaining, tightest } from "./rateLimits.ts"
import { windowAt } from "./windows.ts"

/** The use of one window, with what is reserved. The requests that began in the window change it in place. */
export interface WindowCount {
  readonly window: WindowName
  /** Milliseconds of Unix time. */
  readonly startedAt: number
  readonly resetsAt: number
  requests: number
  tokens: number
  /** An amount of 10^-9. */
  cost: bigint
}

/** The running requests of a key, and what it has used. */
export interface KeyState {
  inFlight: number
  /** When the last admitted request began. */
  lastUsedAt: number | undefined
  /** One for each of `windowNames`. A window that is over is replaced, not reset: its requests commit to the old object. */
  windows: ReadonlyArray<WindowCount>
}

/** The state of a key that this process counts. */
export interface CountedState extends KeyState {
  /** The windows that were replaced last, `mostLeft` of each name, newest first: a clock that returns finds them again. */
  left: ReadonlyArray<WindowCount>
  /** Receives the windows of each request that ends, with its use; set once for each key. */
  ended: ((windows: ReadonlyArray<WindowCount>) => void) | undefined
}

/** Replaced windows of a name that a key keeps: enough for a clock that jumps, runs on over the end of a window and returns. */
const mostLeft = 2

/** Requests, tokens and cost that count for limits. */
type Counts = KeyCounters["windows"][WindowName]

/** The windows at a time, with the counts of each. */
export const windowsAt = (
  now: number,
  countsOf: (window: WindowName, index: number) => Counts
): ReadonlyArray<WindowCount> =>
  windowNames.map((window, i) => {
    const { end, start } = windowAt(window, now)
    const { cost = 0n, requests, tokens } = countsOf(window, i)
    return { window, startedAt: start, resetsAt: end, requests, tokens, cost }
  })

/** The state of a key without running requests. */
export const stateAt = (now: number, { lastUsedAt, windows }: KeyCounters): CountedState => ({
  inFlight: 0,
  lastUsedAt,
  windows: windowsAt(now, (window) => windows[window]),
  left: [],
  ended: undefined
})

const contains = ({ resetsAt, startedAt }: WindowCount, time: number): boolean => startedAt <= time && time < resetsAt

const unused: Counts = { requests: 0, tokens: 0 }

/**
 * Replaces the windows that do not contain a time: by those that the clock has left before, with their running requests, else by
 * windows with the counts of `loaded`, or unused ones.
 */
export const moveTo = (state: CountedState, now: number, loaded?: KeyCounters): void => {
  const before = state.windows
  const others = windowsAt(now, (window) => loaded?.windows[window] ?? unused)
  state.windows = before.map((count, i) =>
    contains(count, now)
      ? count
      : state.left.find((left) => left.window === count.window && contains(left, now)) ?? others[i]!
  )
  const replaced = [...before, ...state.left].filter((count) => !state.windows.includes(count))
  state.left = windowNames.flatMap((name) => replaced.filter(({ window }) => window === name).slice(0, mostLeft))
}

/** Replaces the windows that are over. */
export const advanceTo = (state: CountedState, now: number): void => {
  // The minute is the first window to end.
  if (now >= state.windows[0]!.resetsAt) moveTo(state, now)
}

/** The window of a limit. */
const countOf = (state: KeyState, { window }: KeyLimit): WindowCount => state.windows[windowNames.indexOf(window)]!

/** What remains of the limits. */
export const remainingOf = (state: KeyState, limits: ReadonlyArray<KeyLimit>, at: number): RateLimits => {
  let requests: Remaining | undefined
  let tokens: Remaining | undefined
  for (const limit of limits) {
    const count = countOf(state, limit)
    const left = (most: number, used: number): Remaining => ({
      window: limit.window,
      limit: most,
      remaining: Math.max(0, most - used),
      resetsAt: count.resetsAt
    })
    if (limit.requests !== undefined) requests = tightest(requests, left(limit.requests, count.requests))
    if (limit.tokens !== undefined) tokens = tightest(tokens, left(limit.tokens, count.tokens))
  }
  return { requests, tokens, at }
}

/** Tokens, and an amount of 10^-9. */
export interface Amounts {
  readonly tokens: number
  readonly cost: bigint
}

/** What a request reserves of its key's windows, besides one request. */
export interface Share extends Amounts {
  /** The most that it can use, and the windows with strict limits, which reserve that. Absent without such limits. */
  readonly strict: StrictShare | undefined
}

export interface StrictShare extends Amounts {
  readonly windows: ReadonlyArray<WindowName>
}

/** What a request reserves of a window. */
export const shareIn = (share: Share, window: WindowName): Amounts =>
  share.strict?.windows.includes(window) === true ? share.strict : share

/** The limits that another request with this share would exceed. */
export const exceededBy = (state: KeyState, limits: ReadonlyArray<KeyLimit>, share: Share): Array<Exceeded> => {
  const exceeded: Array<Exceeded> = []
  for (const limit of limits) {
    const { cost, requests, resetsAt, tokens, window } = countOf(state, limit)
    const own = shareIn(share, window)
    if (limit.requests !== undefined && requests + 1 > limit.requests) {
      exceeded.push({ kind: "requests", limit: limit.requests, window, resetsAt })
    }
    if (limit.tokens !== undefined && tokens + own.tokens > limit.tokens) {
      exceeded.push({ kind: "tokens", limit: limit.tokens, window, resetsAt })
    }
    if (limit.cost !== undefined && cost + own.cost > limit.cost) {
      exceeded.push({ kind: "cost", limit: limit.cost, window, resetsAt })
    }
  }
  return exceeded
}

/** What a finished request has used. */
export interface Used {
  /** Whether it counts for the limits of its key. */
  readonly counted: boolean
  readonly tokens: number
  /** An amount of 10^-9; `undefined` without a price. */
  readonly cost: bigint | undefined
}

/** An admitted request. */
export interface Admitted {
  /** The time of admission: milliseconds of Unix time. */
  readonly at: number
  /** What remained of the key's limits then; `undefined` for a key without limits. */
  readonly rateLimits: RateLimits | undefined
  /** What its strict limits reserve; `undefined` without such limits. */
  readonly strict: Amounts | undefined
  /** What serves the request in place of the model that was asked for. */
  readonly fallback: Fallback | undefined
}

/** What serves a request beyond a limit. */
export interface Fallback {
  readonly model: Route
  /** The limit: its window and what it counts. */
  readonly limit: Pick<Exceeded, "kind" | "window">
  /** The error of a request that it cannot serve. */
  readonly refusal: GatewayError
}

/** The admission of a request that is not counted. */
export const admittedAt = (at: number): Admitted => ({
  at,
  rateLimits: undefined,
  strict: undefined,
  fallback: undefined
})

/** What is reserved for a request until it ends. */
export interface Reserved extends Admitted {
  /** Ends the request: its actual use replaces what was reserved. Only the first call has an effect. */
  readonly commit: (used: Used) => void
  /** Its name at the store; `undefined` for a reservation that this process counts. */
  readonly ticket: string | undefined
}

/** The use of a request that does not count. */
export const notCounted: Used = { counted: false, tokens: 0, cost: undefined }

/**
 * Reserves for the lifetime of a scope, and commits what `used` returns when the scope closes. The finalizer is added before
 * the reservation is made, so that an interruption leaves nothing reserved.
 */
export const reserveWithin = <A extends Reserved, E>(
  scope: Scope.Scope,
  used: () => Used,
  reserve: () => Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  let reserved: A | undefined
  const commit = () => {
    reserved?.commit(used())
    return Effect.void
  }
  return Effect.flatMap(Scope.addFinalizerExit(scope, commit), () => {
    if (scope.state._tag === "Closed") return Effect.interrupt
    return Effect.mapEager(reserve(), (made) => reserved = made)
  })
}

/** A reservation that this process counts. */
export class Reservation implements Reserved {
  readonly #state: CountedState
  /** The windows at its beginning. */
  readonly windows: ReadonlyArray<WindowCount>
  readonly #reserved: Share
  #isOver = false
  readonly at: number
  readonly rateLimits: RateLimits | undefined
  readonly fallback: Fallback | undefined
  readonly ticket = undefined

  constructor(state: CountedState, limits: ReadonlyArray<KeyLimit>, at: number, share: Share, fallback?: Fallback) {
    this.#state = state
    this.windows = state.windows
    this.#reserved = share
    this.at = at
    this.fallback = fallback
    state.inFlight++
    state.lastUsedAt = at
    for (const window of this.windows) {
      const own = shareIn(share, window.window)
      window.requests++
      window.tokens += own.tokens
      window.cost += own.cost
    }
    this.rateLimits = limits.length === 0 ? undefined : remainingOf(state, limits, at)
  }

  get strict(): Amounts | undefined {
    return this.#reserved.strict
  }

  commit({ cost = 0n, counted, tokens }: Used): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#state.inFlight--
    for (const window of this.windows) {
      const reserved = shareIn(this.#reserved, window.window)
      window.tokens += (counted ? tokens : 0) - reserved.tokens
      window.cost += (counted ? cost : 0n) - reserved.cost
      if (!counted) window.requests--
    }
    this.#state.ended?.(this.windows)
  }
}
