/** The reason where a server asks for a key and there is none to send. */
export const keyMissing = "the upstream asks for an API key and none is configured"

/**
 * How long an account stays out of rotation after what the upstream said of it: the back-off table of the pool.
 *
 * Pure: randomness comes in as a number. Rule: behaviour "The pool", health.
 */
import type { AccountHealth } from "../domain/classifyUpstreamFailure.ts"

/** What takes an account out of rotation. */
export type Fault = Exclude<AccountHealth, "none" | "token_expired">

/** Out of rotation for `delay` milliseconds; `out` needs a try of its own before it comes back. */
export interface Suspension {
  readonly state: "cooling" | "out"
  readonly delay: number
}

interface BackOff {
  readonly state: Suspension["state"]
  /** Milliseconds of the first delay; each further one in a row is twice as long. */
  readonly first: number
  readonly longest: number
  /** Why the account is out of rotation, for the admin list. */
  readonly reason: string
}

/** The table. */
export const backOff: Readonly<Record<Fault, BackOff>> = {
  rate_limited: { state: "cooling", first: 1_000, longest: 600_000, reason: "the upstream limits its rate" },
  busy: { state: "cooling", first: 500, longest: 500, reason: "it runs as many completions as it may" },
  refused_login: { state: "out", first: 60_000, longest: 3_600_000, reason: "the upstream refuses its login" },
  suspended: { state: "out", first: 60_000, longest: 3_600_000, reason: "the upstream has suspended it" }
}

/** The delay grows by up to this share, at random, so that accounts limited together do not come back together. */
export const jitter = 0.25

/** The state in which a fault leaves an account. */
export const stateAfter = (fault: Fault): Suspension["state"] => backOff[fault].state

/** Words for the admin list. */
export const reasonFor = (fault: Fault): string => backOff[fault].reason

/**
 * How long an account is out of rotation after its `count`-th fault of that kind in a row. The upstream's own `retryAfter`
 * (seconds) decides for a cool-down, up to the longest; else the delay doubles. `random` is in [0, 1).
 */
export const suspensionFor = (
  fault: Fault,
  count: number,
  retryAfter: number | undefined,
  random: number
): Suspension => {
  const { first, longest, state } = backOff[fault]
  const delay = state === "cooling" && retryAfter !== undefined
    ? Math.max(0, retryAfter * 1_000)
    : first * 2 ** Math.min(count - 1, 30) * (1 + jitter * random)
  return { state, delay: Math.round(Math.min(delay, longest)) }
}
