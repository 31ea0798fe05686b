/**
 * Times in the query of a request.
 */
import { type GatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { parseTimestamp } from "../domain/time.ts"

/** The end of the year 9999, the last time that timestamps can express. */
export const lastTime = Date.UTC(10_000, 0) - 1

/** Unix time in seconds or milliseconds: the milliseconds of a recent time are no seconds before the year 10000. */
const unixMillis = (time: number): number => Math.floor(time * 1000 <= lastTime ? time * 1000 : time)

/**
 * Unix milliseconds of an RFC 3339 time, a day, or Unix seconds or milliseconds; `undefined` for anything else. An unescaped plus of a
 * query arrives as a space.
 */
export const readTime = (text: string): number | undefined => {
  const time = /^\d+(\.\d+)?$/.test(text)
    ? unixMillis(Number(text))
    : parseTimestamp(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text.replace(/ (?=\d\d:\d\d$)/, "+"))
  return time === undefined || time < 0 || time > lastTime ? undefined : time
}

/** The error for a text that `readTime` does not know. */
export const wrongTime = (name: string): GatewayError =>
  invalidRequest(
    `${name} must be an RFC 3339 time, a day such as 2026-11-21, or Unix seconds or milliseconds`,
    name
  )
