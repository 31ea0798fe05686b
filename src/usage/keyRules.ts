/**
 * What the limits of keys say, wherever they are counted: who may do what, and the words of a refusal. Pure.
 */
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { KeyLimit, KeyRecord } from "../config/keyRecords.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { formatTimestamp } from "../domain/timestamp.ts"
import { exceededBy, type KeyState, type Used, type WindowCount } from "./Admission.ts"
import { exceededMessage, type RateLimits } from "./rateLimits.ts"

/** A request that asks to be admitted. */
export interface AdmissionRequest {
  /** The id of its key; what is no key id is not limited. */
  readonly key: string
  /** Estimates the tokens of its prompt; only called where the key has a limit of tokens. */
  readonly promptTokens: () => number
  /** Tells what it has used; asked once, when its scope closes. */
  readonly used: () => Used
}

/** Why a request is not admitted. */
export class Refused {
  readonly error: GatewayError
  /** What is left of the key's limits; `undefined` where it has none. */
  readonly rateLimits: RateLimits | undefined
  constructor(error: GatewayError, rateLimits: RateLimits | undefined) {
    this.error = error
    this.rateLimits = rateLimits
  }
}

/** What a key has under way and has used, for whoever looks. */
export interface KeyUsage {
  readonly inFlight: number
  /** `undefined` for no limit. */
  readonly maxInFlight: number | undefined
  /** Milliseconds of Unix time. */
  readonly lastUsedAt: number | undefined
  /** One for each of `windowNames`. */
  readonly windows: ReadonlyArray<Readonly<WindowCount>>
}

/** Whether a key may be used at all. */
export type KeyStanding = "active" | "disabled" | "expired"

/** Whether a key with this record may be used at `now`, in milliseconds. */
export const standingOf = (record: KeyRecord | undefined, now: number): KeyStanding =>
  record === undefined
    ? "active"
    : record.disabled
    ? "disabled"
    : record.expires_at !== undefined && record.expires_at <= now
    ? "expired"
    : "active"

/** What a caller with a key that may not be used is told; `undefined` where it may. */
export const refuseKey = (record: KeyRecord | undefined, now: number): GatewayError | undefined => {
  const standing = standingOf(record, now)
  if (standing === "active") return undefined
  const message = standing === "disabled"
    ? "This API key is disabled"
    : `This API key expired at ${formatTimestamp(record?.expires_at ?? now)}`
  return gatewayError("authentication_failed", message)
}

/** A `Retry-After` beyond this is not waited for: clients would try at once, or sleep that long. */
const longestRetry = 60

export const noLimits: ReadonlyArray<KeyLimit> = []

/** Whether one of the limits is of tokens. */
export const countsTokens = (limits: ReadonlyArray<KeyLimit>): boolean =>
  limits.some(({ tokens }) => tokens !== undefined)

/** Requests that a key may have under way; `undefined` for no limit. */
export const maxInFlight = ({ runtime }: GatewayConfig, record: KeyRecord | undefined): number | undefined =>
  record?.max_inflight ?? runtime.key_max_inflight

/** A request with so many tokens before what its key has used. Times are milliseconds of Unix time. */
export interface Weighed {
  readonly state: KeyState
  readonly limits: ReadonlyArray<KeyLimit>
  /** Requests that may be under way. */
  readonly most: number | undefined
  readonly tokens: number
  readonly now: number
}

/** Why a request is refused; `undefined` where it is not. */
export const refusalOf = ({ limits, most, now, state, tokens }: Weighed): GatewayError | undefined => {
  if (most !== undefined && state.inFlight >= most) {
    const message = `This API key has as many requests under way as it may have (${most})`
    return gatewayError("rate_limit_exceeded", message, { retryAfter: 1 })
  }
  const exceeded = limits.length === 0 ? [] : exceededBy(state, limits, tokens)
  if (exceeded.length === 0) return undefined
  const tooSmall = limits.find((limit) => limit.tokens !== undefined && tokens > limit.tokens)
  if (tooSmall !== undefined) {
    const message =
      `The prompt has about ${tokens} tokens; this API key is limited to ${tooSmall.tokens} per ${tooSmall.window}`
    return gatewayError("rate_limit_exceeded", message, { retry: false })
  }
  const retryAfter = Math.ceil((Math.max(...exceeded.map(({ resetsAt }) => resetsAt)) - now) / 1000)
  const retry = retryAfter > longestRetry ? { retryAfter, retry: false } : { retryAfter }
  return gatewayError("rate_limit_exceeded", exceededMessage(exceeded), retry)
}
