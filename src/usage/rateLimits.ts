/**
 * The limits of a key as callers see them: what remains of them, and sentences.
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
