/** The three forms of a date in HTTP (RFC 9110 5.6.7). */
const httpDate = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? [A-Za-z0-9 :-]{14,24}(?: GMT)?$/

/**
 * Seconds that a `Retry-After` header asks for (RFC 9110 10.2.3), as a number of up to 10 digits or a date, within 1 and 600;
 * anything else says nothing. `now` is the wall clock's, in milliseconds.
 */
export const parseRetryAfter = (header: string | undefined, now: number): number | undefined => {
  if (header === undefined || header.length > 100) return undefined
  const text = header.trim()
  const clamp = (seconds: number) => Math.min(600, Math.max(1, Math.ceil(seconds)))
  if (/^\d{1,10}$/.test(text)) return clamp(Number(text))
  const date = httpDate.test(text) ? Date.parse(text.endsWith("GMT") ? text : `${text} GMT`) : Number.NaN
  return Number.isNaN(date) ? undefined : clamp((date - now) / 1000)
}
