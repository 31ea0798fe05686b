/**
 * The limits of a key as callers see them: headers with OpenAI's names, and sentences.
 */
import type { KeyLimit, WindowName } from "../config/windowLimit.ts"
import { formatDecimal } from "../domain/decimal.ts"
import { formatTimestamp } from "../domain/time.ts"

/** What remains of a window's requests or tokens. */
export interface Remaining {
  readonly window: WindowName
  readonly limit: number
  readonly remaining: number
  /** When the window ends: milliseconds of Unix time. */
  readonly resetsAt: number
}

/** A duration rounded up to whole seconds: `17s`, `6m0s`, `31h4m0s`. */
export const formatReset = (millis: number): string => {
  const seconds = Math.max(0, Math.ceil(millis / 1000))
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  return hours > 0 ? `${hours}h${minutes}m${rest}s` : minutes > 0 ? `${minutes}m${rest}s` : `${rest}s`
}

/** The window with the least remaining; of equals, the one that resets last. */
export const tightest = (found: Remaining | undefined, next: Remaining): Remaining =>
  found === undefined || next.remaining < found.remaining ||
    (next.remaining === found.remaining && next.resetsAt > found.resetsAt)
    ? next
    : found

/** What remains of requests and of tokens; `undefined` for what is not limited. */
export interface RateLimits {
  readonly requests: Remaining | undefined
  readonly tokens: Remaining | undefined
  /** The time of these numbers: milliseconds of Unix time. */
  readonly at: number
}

/** The names of all rate limit headers. */
export const rateLimitHeaderNames: ReadonlyArray<string> = ["limit", "remaining", "reset"].flatMap((what) =>
  ["requests", "tokens"].map((kind) => `x-ratelimit-${what}-${kind}`)
)

/** The headers with what remains. */
export const rateLimitHeaders = (limits: RateLimits): Record<string, string> => {
  const headers: Record<string, string> = {}
  for (const kind of ["requests", "tokens"] as const) {
    const left = limits[kind]
    if (left === undefined) continue
    headers[`x-ratelimit-limit-${kind}`] = String(left.limit)
    headers[`x-ratelimit-remaining-${kind}`] = String(left.remaining)
    headers[`x-ratelimit-reset-${kind}`] = formatReset(left.resetsAt - limits.at)
  }
  return headers
}

/** A limit that a request would exceed. */
export type Exceeded =
  & ({ readonly kind: "requests" | "tokens"; readonly limit: number } | {
    readonly kind: "cost"
    readonly limit: bigint
  })
  & {
    readonly window: KeyLimit["window"]
    readonly resetsAt: number
  }

/** An amount with its currency: `12.5 USD`; `a cost of 12.5` without a currency. */
export const formatCost = (amount: bigint, currency: string | undefined): string =>
  currency === undefined ? `a cost of ${formatDecimal(amount)}` : `${formatDecimal(amount)} ${currency}`

const limitText = (exceeded: Exceeded, currency: string | undefined): string =>
  exceeded.kind === "cost"
    ? formatCost(exceeded.limit, currency)
    : `${exceeded.limit} ${exceeded.limit === 1 ? exceeded.kind.slice(0, -1) : exceeded.kind}`

/** A sentence for each limit that is used up, with the end of its window. */
export const exceededMessage = (exceeded: ReadonlyArray<Exceeded>, currency: string | undefined): string =>
  exceeded.map((each) =>
    `This API key's limit of ${limitText(each, currency)} ${
      each.window === "hour" ? "an" : "a"
    } ${each.window} is used up until ${formatTimestamp(each.resetsAt)}`
  ).join("; ")
