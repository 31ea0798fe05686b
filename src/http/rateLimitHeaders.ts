/** The limits of a key as headers with OpenAI's names. */
import type { RateLimits } from "../usage/rateLimits.ts"

/** A duration rounded up to whole seconds: `17s`, `6m0s`, `31h4m0s`. */
export const formatReset = (millis: number): string => {
  const seconds = Math.max(0, Math.ceil(millis / 1000))
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60]
  return hours > 0 ? `${hours}h${minutes}m${rest}s` : minutes > 0 ? `${minutes}m${rest}s` : `${rest}s`
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
