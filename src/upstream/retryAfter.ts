/** When a server takes requests again, as the headers of its answer say. */
import { longestRetryAfter } from "../domain/classifyUpstreamFailure.ts"
import { countdownOf, longestWait } from "../domain/statedTime.ts"

/** A header of an answer, by its name in lower case. */
type HeaderOf = (name: string) => string | undefined

/** The three forms of a date in HTTP (RFC 9110 5.6.7). */
const httpDate = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? [A-Za-z0-9 :-]{14,24}(?: GMT)?$/

/**
 * Seconds that the `Retry-After` header asks for (RFC 9110 10.2.3), as a number of up to 10 digits and a fraction, or a date, clamped to 1 second to
 * 30 days; a larger number is a moment in Unix time or milliseconds (`countdownOf`); without it those of `retry-after-ms`. `undefined` for anything else. `now` is the wall clock in milliseconds.
 */
export const retryAfterOf = (header: HeaderOf, now: number): number | undefined => {
  const text = header("retry-after")?.trim() ?? ""
  if (text.length > 100) return undefined
  const clamp = (seconds: number) => Math.min(longestRetryAfter, Math.max(1, Math.ceil(seconds)))
  if (/^(?:\d{1,10}(?:\.\d{1,9})?|[1-9]\d{12})$/.test(text)) {
    const stated = Number(text)
    // Some servers send the milliseconds of the other header in both.
    const isMillis = stated >= 1_000 && stated === retryAfterMsOf(header)
    return clamp((isMillis ? stated : countdownOf(stated, longestWait, now)) / 1_000)
  }
  const date = httpDate.test(text) ? Date.parse(text.endsWith("GMT") ? text : `${text} GMT`) : Number.NaN
  if (!Number.isNaN(date)) return clamp((date - now) / 1000)
  const millis = text === "" ? retryAfterMsOf(header) : undefined
  return millis === undefined ? undefined : clamp(millis / 1000)
}

/** Milliseconds that the header `retry-after-ms` asks for, as a number of up to 12 digits; `undefined` for anything else. */
export const retryAfterMsOf = (header: HeaderOf): number | undefined => {
  const text = header("retry-after-ms")?.trim() ?? ""
  return /^\d{1,12}(?:\.\d{1,12})?$/.test(text) ? Number(text) : undefined
}
