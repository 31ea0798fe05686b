/**
 * What a key has under way and has used of its windows, and one request's share in that: reserved when it is admitted,
 * settled once when it is over.
 */
import * as Effect from "effect/Effect"
import * as Scope from "effect/Scope"
import type { KeyLimit, WindowName } from "../config/keyRecords.ts"
import { windowNames } from "../config/schema.ts"
import type { KeyCounters } from "./Batch.ts"
import { type Exceeded, type RateLimits, type Remaining, tightest } from "./rateLimits.ts"
import { windowAt } from "./windows.ts"

/** What is used of one window, with what is reserved. Changed in place by the requests that began in it. */
export interface WindowCount {
  readonly window: WindowName
  /** Milliseconds of Unix time. */
  readonly startedAt: number
  readonly resetsAt: number
  requests: number
  tokens: number
}

/** What a key has under way and has used. */
export interface KeyState {
  inFlight: number
  /** When the last request that was admitted began. */
  lastUsedAt: number | undefined
  /** One for each of `windowNames`. A window that is over is replaced, never changed: requests of its time settle in it. */
  windows: ReadonlyArray<WindowCount>
}

/** The state of a key that has used what `counters` say. */
export const stateAt = (now: number, counters: KeyCounters): KeyState => ({
  inFlight: 0,
  lastUsedAt: counters.lastUsedAt,
  windows: windowNames.map((window) => {
    const { end, start } = windowAt(window, now)
    return { window, startedAt: start, resetsAt: end, ...counters.windows[window] }
  })
})

/** Replaces the windows that are over. */
export const passTo = (state: KeyState, now: number): void => {
  // The minute is over before any other window is.
  if (now < state.windows[0]!.resetsAt) return
  state.windows = state.windows.map((count) => {
    if (now < count.resetsAt) return count
    const { end, start } = windowAt(count.window, now)
    return { window: count.window, startedAt: start, resetsAt: end, requests: 0, tokens: 0 }
  })
}

/** The window of a limit. */
export const countOf = (state: KeyState, { window }: KeyLimit): WindowCount =>
  state.windows[windowNames.indexOf(window)]!

/** What is left of the limits. */
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

/** The limits that one request more, with so many tokens, would go beyond. */
export const exceededBy = (state: KeyState, limits: ReadonlyArray<KeyLimit>, tokens: number): Array<Exceeded> => {
  const exceeded: Array<Exceeded> = []
  for (const limit of limits) {
    const { requests, resetsAt, tokens: used, window } = countOf(state, limit)
    if (limit.requests !== undefined && requests + 1 > limit.requests) {
      exceeded.push({ kind: "requests", limit: limit.requests, window, resetsAt })
    }
    if (limit.tokens !== undefined && used + tokens > limit.tokens) {
      exceeded.push({ kind: "tokens", limit: limit.tokens, window, resetsAt })
    }
  }
  return exceeded
}

/** What a request has used once it is over. */
export interface Used {
  /** Whether it counts: one that does not is given back whole. */
  readonly counted: boolean
  readonly tokens: number
}

/** A request that was admitted. */
export interface Admitted {
  /** When it was admitted: milliseconds of Unix time. */
  readonly at: number
  /** What was left of the key's limits then; `undefined` where it has none. */
  readonly rateLimits: RateLimits | undefined
}

/** The admission of a request that nothing is counted of. */
export const admittedAt = (at: number): Admitted => ({ at, rateLimits: undefined })

/** What is reserved for a request until it is settled. */
export interface Reserved extends Admitted {
  /** Gives the place back, and puts what the request used in the place of what was reserved. To be called once. */
  readonly settle: (used: Used) => void
}

/**
 * Reserves for the length of a scope; what the request has used is asked when the scope closes. The scope knows of the
 * reservation before it is made, so that an interruption leaves nothing reserved.
 */
export const reserveWithin = <A extends Reserved, E>(
  scope: Scope.Scope,
  used: () => Used,
  reserve: () => Effect.Effect<A, E>
): Effect.Effect<A, E> => {
  let reserved: A | undefined
  const settle = () => {
    reserved?.settle(used())
    return Effect.void
  }
  return Effect.flatMap(Scope.addFinalizerExit(scope, settle), () => {
    if (scope.state._tag === "Closed") return Effect.interrupt
    return Effect.mapEager(reserve(), (made) => reserved = made)
  })
}

/** What this process reserves for a request: its place and its share of the windows. */
export class Reservation implements Reserved {
  readonly #state: KeyState
  /** The windows in which it began. */
  readonly #windows: ReadonlyArray<WindowCount>
  readonly #reserved: number
  readonly at: number
  readonly rateLimits: RateLimits | undefined

  constructor(state: KeyState, limits: ReadonlyArray<KeyLimit>, at: number, tokens: number) {
    this.#state = state
    this.#windows = state.windows
    this.#reserved = tokens
    this.at = at
    state.inFlight++
    state.lastUsedAt = at
    for (const window of this.#windows) {
      window.requests++
      window.tokens += tokens
    }
    this.rateLimits = limits.length === 0 ? undefined : remainingOf(state, limits, at)
  }

  settle({ counted, tokens }: Used): void {
    this.#state.inFlight--
    for (const window of this.#windows) {
      window.tokens += (counted ? tokens : 0) - this.#reserved
      if (!counted) window.requests--
    }
  }
}
