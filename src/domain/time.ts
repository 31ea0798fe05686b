/**
 * Times: RFC 3339 text, as configurations, admin requests and replies write it, and monotonic milliseconds.
 */

const pattern = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))$/

/**
 * Reads an RFC 3339 time with its zone; gives milliseconds of Unix time, or `undefined` for what is none, such as
 * 30 February. Digits beyond milliseconds are cut off.
 */
export const parseTimestamp = (text: string): number | undefined => {
  const match = pattern.exec(text.trim())
  if (match === null) return undefined
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number)
  const fraction = Math.floor(Number(`0${match[7] ?? ""}`) * 1000)
  const [zoneHour, zoneMinute] = [Number(match[9] ?? 0), Number(match[10] ?? 0)]
  const local = Date.UTC(2000, month! - 1, day!, hour!, minute!, second!, fraction)
  // Years below 100 mean other ones to `Date.UTC`.
  const date = new Date(local)
  date.setUTCFullYear(year!, month! - 1, day!)
  const isReal = month! >= 1 && month! <= 12 && date.getUTCDate() === day && day! >= 1 && hour! <= 23 &&
    minute! <= 59 && second! <= 59 && zoneHour <= 23 && zoneMinute <= 59
  if (!isReal) return undefined
  const offset = (zoneHour * 60 + zoneMinute) * 60_000
  return date.getTime() - (match[8] === "-" ? -offset : offset)
}

/** Milliseconds of Unix time as RFC 3339 in UTC, with `Z`; the fraction only where there is one. */
export const formatTimestamp = (millis: number): string => new Date(millis).toISOString().replace(".000Z", "Z")

/** What Effect's `Clock` has of a monotonic clock; floor 0 knows no more of it. */
export interface MonotonicSource {
  readonly monotonicTimeNanosUnsafe: () => bigint
}

/** Milliseconds since some fixed moment: for ages, delays and deadlines, which a corrected wall clock must not move. */
export const monotonicMillis = (clock: MonotonicSource): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
