/**
 * What a key has under way and has used of its windows, and one request's share in that: reserved when it is admitted,
 * settled once when it is over.
 */
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

/** A request that was admitted, until it is settled. */
export interface Admitted {
  /** When it was admitted: milliseconds of Unix time. */
  readonly at: number
  /** What was left of the key's limits then; `undefined` where it has none. */
  readonly rateLimits: RateLimits | undefined
  /**
   * Gives the place back, and puts what the request really used in the place of what was reserved; one that does not count is
   * given back whole. Only the first call counts.
   */
  readonly settle: (counted: boolean, tokens: number) => void
}

/** A request that was admitted by this process: its place and what is reserved for it. */
export class Admission implements Admitted {
  readonly #state: KeyState | undefined
  /** The windows in which it began. */
  readonly #windows: ReadonlyArray<WindowCount>
  readonly #reserved: number
  readonly at: number
  readonly rateLimits: RateLimits | undefined
  #settled = false

  /** Reserves what the request needs; without a state there is nothing to reserve. */
  constructor(state: KeyState | undefined, limits: ReadonlyArray<KeyLimit>, at: number, tokens: number) {
    this.#state = state
    this.#windows = state?.windows ?? []
    this.#reserved = tokens
    this.at = at
    if (state !== undefined) {
      state.inFlight++
      state.lastUsedAt = at
      for (const window of this.#windows) {
        window.requests++
        window.tokens += tokens
      }
    }
    this.rateLimits = state === undefined || limits.length === 0 ? undefined : remainingOf(state, limits, at)
  }

  settle(counted: boolean, tokens: number): void {
    if (this.#settled) return
    this.#settled = true
    if (this.#state === undefined) return
    this.#state.inFlight--
    for (const window of this.#windows) {
      window.tokens += (counted ? tokens : 0) - this.#reserved
      if (!counted) window.requests--
    }
  }
}
