/**
 * How long an account stays out of rotation after a fault: the back-off table of the pool.
 *
 * Pure: randomness is an argument. Rule: behaviour "The pool", health.
 */
import { longestRetryAfter } from "../domain/classifyUpstreamFailure.ts"
import type { AccountHealth } from "../domain/failureRules.ts"
import { triedAfter } from "../domain/statedTime.ts"

/** The reason for an account without a key, whose server asks for one. */
export const keyMissing = "the upstream asks for an API key and none is configured"

/** The reason for an account with a proxy of its own; the fault does not say which of both it was. */
export const proxyFailed = "the upstream refuses its login, or its proxy fails"

/** What takes an account out of rotation. */
export type Fault = Exclude<AccountHealth, "none" | "token_expired">

/**
 * Out of rotation for `delay` milliseconds; an `out` account returns only after a successful try. `stated` is for how many milliseconds the
 * upstream wants no request: beyond `delay`, one request at a time tries the account.
 */
export interface Suspension {
  readonly state: "cooling" | "out"
  readonly delay: number
  readonly stated: number
}

interface BackOff {
  readonly state: Suspension["state"]
  /** Milliseconds of the first delay; doubled for each additional fault in a row. */
  readonly first: number
  readonly longest: number
  /** Milliseconds of the longest delay that the upstream states. */
  readonly longestStated: number
  /** Why the account is out of rotation, for operators. */
  readonly reason: string
}

export const backOff: Readonly<Record<Fault, BackOff>> = {
  rate_limited: {
    state: "cooling",
    first: 1_000,
    longest: 600_000,
    longestStated: longestRetryAfter * 1_000,
    reason: "the upstream limits its rate"
  },
  busy: {
    state: "cooling",
    first: 500,
    longest: 500,
    longestStated: 500,
    reason: "it runs as many completions as it may"
  },
  refused_login: {
    state: "out",
    first: 60_000,
    longest: 3_600_000,
    longestStated: 3_600_000,
    reason: "the upstream refuses its login"
  },
  suspended: {
    state: "out",
    first: 60_000,
    longest: 3_600_000,
    longestStated: 3_600_000,
    reason: "the upstream has suspended it"
  }
}

/** A delay grows by up to this share, at random, so that accounts limited together return at different times. */
export const jitter = 0.25

/** The state of an account after a fault. */
export const stateAfter = (fault: Fault): Suspension["state"] => backOff[fault].state

/** The reason of a fault, for operators. */
export const reasonFor = (fault: Fault): string => backOff[fault].reason

/**
 * The suspension after the `count`-th fault of one kind in a row. For a cool-down, the upstream's `retryAfter` (seconds) is the
 * delay, up to `triedAfter`, and `longestStated` bounds what it states; otherwise the delay doubles with each fault up to the longest. `random` is in [0, 1).
 */
export const suspensionFor = (
  fault: Fault,
  count: number,
  retryAfter: number | undefined,
  random: number
): Suspension => {
  const { first, longest, longestStated, state } = backOff[fault]
  const stated = Math.round(
    state === "cooling" && retryAfter !== undefined
      ? Math.min(Math.max(0, retryAfter * 1_000), longestStated)
      : Math.min(first * 2 ** Math.min(count - 1, 30) * (1 + jitter * random), longest)
  )
  return { state, delay: Math.min(stated, triedAfter), stated }
}
