/**
 * Where a request goes after a failed try, as a pure function of its tries.
 *
 * A failure of an account moves on to another account of the target; a failure of the target moves on to the next target. Targets that
 * were not tried yet come first, in order; after them the tries go round, but not to a target that failed for good. A prompt that is too long
 * for a known window goes to the next target with a larger one.
 */
import type { Classification } from "./classifyUpstreamFailure.ts"
import type { FailureClass } from "./FailureClass.ts"
import type { Windows } from "./fits.ts"
import { changedError, type GatewayError } from "./GatewayError.ts"
import { triedAfter } from "./statedTime.ts"

/** Most tries of one target. */
export const mostTriesOfTarget = 3

/** Most tries of one request. */
export const mostTries = 8

/** The least share of the time for all tries that one target gets, in milliseconds. */
const leastShare = 5_000

/** Refusals of the request itself that a route may send to its next target. */
export const alsoOnNames = ["context_length", "content_filter"] as const
export type AlsoOn = typeof alsoOnNames[number]

const refusals: ReadonlyMap<FailureClass, AlsoOn> = new Map<FailureClass, AlsoOn>([
  ["prompt_too_long", "context_length"],
  ["request_too_large", "context_length"],
  ["withdrawn", "content_filter"]
])

/** A failed try. */
export interface FailedTry {
  /** Index of the target in the route. */
  readonly target: number
  readonly failure: Pick<Classification, "class" | "next" | "retry">
}

/** The state of a request after a failed try. */
export interface TriedRequest {
  /** The number of targets that can serve the request. */
  readonly targets: number
  /** At least one, the latest last. */
  readonly tries: ReadonlyArray<FailedTry>
  /** Whether the last target has an account in rotation on which the request has not failed. */
  readonly hasAccount: boolean
  readonly alsoOn: ReadonlyArray<AlsoOn>
  /** The request is pinned to an account: no other account or target serves it. */
  readonly isPinned: boolean
  /** The windows of the targets, in tokens; `undefined` for an unknown one. */
  readonly windows: Windows | undefined
  /** Targets that have no account for the request at present, or cannot serve it. */
  readonly out: ReadonlySet<number> | undefined
}

/**
 * Where the next try goes. `refresh`: the same account with a fresh token. `account`: another account of the target. `target`: any
 * account of a target, which may be the same one. `end`: the request fails.
 */
export type NextTry =
  | { readonly _tag: "refresh" | "account" | "target"; readonly target: number }
  | { readonly _tag: "end" }

const end: NextTry = { _tag: "end" }

/** Chooses the next try. O(tries + targets), both of which are bounded. */
export const nextTry = ({ alsoOn, hasAccount, isPinned, out, targets, tries, windows }: TriedRequest): NextTry => {
  const last = tries[tries.length - 1]
  if (last === undefined || tries.length >= mostTries) return end
  const { failure, target } = last
  const triesOf = (index: number) => tries.filter((attempt) => attempt.target === index).length
  const untried = (isWanted: (index: number) => boolean = () => true) => {
    for (let index = 0; index < targets; index++) {
      if (triesOf(index) === 0 && out?.has(index) !== true && isWanted(index)) return index
    }
    return undefined
  }
  const hasTry = triesOf(target) < mostTriesOfTarget
  if (failure.retry === "here_after_refresh" && hasTry) return { _tag: "refresh", target }
  if (isPinned) return end
  if (failure.next === "end") {
    const refusal = refusals.get(failure.class)
    const window = failure.class === "prompt_too_long" ? windows?.[target] : undefined
    const next = (window === undefined ? undefined : untried((index) => (windows?.[index] ?? 0) > window)) ??
      (refusal !== undefined && alsoOn.includes(refusal) ? untried() : undefined)
    return next === undefined ? end : { _tag: "target", target: next }
  }
  if (failure.next === "account" && hasAccount && hasTry) return { _tag: "account", target }
  const next = untried()
  if (next !== undefined) return { _tag: "target", target: next }
  for (let step = 1; step <= targets; step++) {
    const index = (target + step) % targets
    const latest = tries.findLast((attempt) => attempt.target === index)
    const isOpen = triesOf(index) < mostTriesOfTarget && latest?.failure.retry !== "no"
    if (isOpen && out?.has(index) !== true) return { _tag: "target", target: index }
  }
  return end
}

/** Milliseconds for a try: its share of the time that is left, of which every target that was not tried yet gets one. */
export const shareOfTime = (left: number, untried: number): number =>
  Math.min(left, Math.max(leastShare, left / Math.max(1, untried)))

type Told = Pick<Classification, "class" | "error" | "retryAfter">

/**
 * The error of a request whose only target has no account left, as the last try says it. `free` are the seconds after which the pool has an
 * account again, and `elapsed` those since the first failure. A time that a server has stated counts as it is, unless another account is
 * free before.
 */
export const errorWithoutAccount = (
  tries: ReadonlyArray<{ readonly failure: Told }>,
  free: number | undefined,
  elapsed: number
): GatewayError | undefined => {
  const last = tries.at(-1)?.failure.error
  if (last === undefined) return undefined
  const stated = tries.flatMap(({ failure: { error, retryAfter } }) =>
    retryAfter === undefined || error.retryAfter === undefined ? [] : [error.retryAfter]
  )
  const least = Math.min(...stated)
  const isSooner = free !== undefined && free < Math.min(least, triedAfter / 1_000) - Math.ceil(elapsed) - 1
  return changedError(last, last.message, stated.length === 0 || isSooner ? free : least)
}

/** An error that says how many targets were tried, if there were several, and when the first of them may be asked again. */
const errorOfAll = (error: GatewayError, targets: number, retryAfter = error.retryAfter): GatewayError => {
  if (targets < 2 && retryAfter === error.retryAfter) return error
  const text = targets < 2 ? error.message : `${error.message} (${targets} targets were tried)`
  return changedError(error, text, retryAfter)
}

/** The error of a request whose tries all failed, the latest last. */
export const errorOfTries = (
  tries: ReadonlyArray<{ readonly target: number; readonly failure: Told }>
): GatewayError | undefined => {
  const last = tries[tries.length - 1]?.failure
  if (last === undefined) return undefined
  const targets = new Set(tries.map(({ target }) => target)).size
  // A refusal that is the request's own stands, whatever comes after it.
  const own = tries.findLast(({ failure }) => refusals.has(failure.class))?.failure
  if (own !== undefined) return errorOfAll(own.error, targets)
  const waits = tries.flatMap(({ failure: { error } }) => error.retryAfter ?? [])
  return errorOfAll(last.error, targets, waits.length === 0 ? undefined : Math.min(...waits))
}
