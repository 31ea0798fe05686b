/**
 * Times: RFC 3339 text, as configurations, admin requests and replies write it, and monotonic milliseconds.
 */

const pattern = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))$/

/**
 * Parses an RFC 3339 time with zone to milliseconds of Unix time; `undefined` for anything else, 30 February included. Digits beyond
 * milliseconds are dropped.
 */
export const parseTimestamp = (text: string): number | undefined => {
  const match = pattern.exec(text.trim())
  if (match === null) return undefined
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number)
  const fraction = Math.floor(Number(`0${match[7] ?? ""}`) * 1000)
  const [zoneHour, zoneMinute] = [Number(match[9] ?? 0), Number(match[10] ?? 0)]
  const local = Date.UTC(2000, month! - 1, day!, hour!, minute!, second!, fraction)
  // `Date.UTC` maps years below 100 to the 20th century.
  const date = new Date(local)
  date.setUTCFullYear(year!, month! - 1, day!)
  const isReal = month! >= 1 && month! <= 12 && date.getUTCDate() === day && day! >= 1 && hour! <= 23 &&
    minute! <= 59 && second! <= 59 && zoneHour <= 23 && zoneMinute <= 59
  if (!isReal) return undefined
  const offset = (zoneHour * 60 + zoneMinute) * 60_000
  return date.getTime() - (match[8] === "-" ? -offset : offset)
}

/** Writes milliseconds of Unix time as RFC 3339 in UTC, with `Z`, and with a fraction unless it is zero. */
export const formatTimestamp = (millis: number): string => new Date(millis).toISOString().replace(".000Z", "Z")

/** The monotonic part of Effect's `Clock`, which floor 0 may not import. */
export interface MonotonicSource {
  readonly monotonicTimeNanosUnsafe: () => bigint
}

/** Milliseconds since an arbitrary moment, for ages, delays and deadlines, which must not follow corrections of the wall clock. */
export const monotonicMillis = (clock: MonotonicSource): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
