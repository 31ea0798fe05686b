/** What failed tries of a request leave: the refusals that a route may send on, the time for the next try, and the error in the end. */
import type { Classification } from "./classifyUpstreamFailure.ts"
import type { FailureClass } from "./FailureClass.ts"
import { changedError, type GatewayError } from "./GatewayError.ts"
import { triedAfter } from "./statedTime.ts"

/** The least share of the time for all tries that one target gets, in milliseconds. */
const leastShare = 5_000

/** Refusals of the request itself that a route may send to its next target. */
export const alsoOnNames = ["context_length", "content_filter"] as const
export type AlsoOn = typeof alsoOnNames[number]

/** The refusals of requests, by the class of their failures. */
export const refusals: ReadonlyMap<FailureClass, AlsoOn> = new Map<FailureClass, AlsoOn>([
  ["prompt_too_long", "context_length"],
  ["request_too_large", "context_length"],
  ["withdrawn", "content_filter"]
])

/** Milliseconds for a try: its share of the time that is left, of which every target that was not tried yet gets one. */
export const shareOfTime = (left: number, untried: number): number =>
  Math.min(left, Math.max(leastShare, left / Math.max(1, untried)))

/** What is read of a failed try. */
type TryFailure = Pick<Classification, "class" | "error" | "retryAfter">

/**
 * The error of a request whose only target has no account left, as the last try says it. `free` are the seconds after which the pool has an
 * account again, and `elapsed` those since the first failure. A time that a server has stated counts as it is, unless another account is
 * free before.
 */
export const errorWithoutAccount = (
  tries: ReadonlyArray<{ readonly failure: TryFailure }>,
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
  tries: ReadonlyArray<{ readonly target: number; readonly failure: TryFailure }>
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
