/**
 * Times that servers state as numbers. Some write a moment where others write a countdown, and milliseconds where others write seconds: the
 * size of the number tells which it is.
 */

/** The longest wait that a server may state, in milliseconds. */
export const longestWait = 30 * 24 * 3_600_000

/** Milliseconds after which one request tries an account whose upstream states a longer wait, which may be a mistake of its server. */
export const triedAfter = 3_600_000

/** Unix seconds from 2001 on; no countdown is as long. */
const leastMoment = 1e9

/** Unix milliseconds from 1973 on; as seconds they are thousands of years away. */
const leastMillis = 1e11

/** Unix milliseconds of a moment in Unix seconds or milliseconds. */
export const momentOf = (value: number): number => value < leastMillis ? Math.round(value * 1_000) : Math.round(value)

/**
 * Milliseconds of a countdown, `longest` at most. A number of seconds beyond `longest` is a moment in Unix time, or milliseconds. `now` is in
 * Unix milliseconds.
 */
export const countdownOf = (value: number, longest: number, now: number): number => {
  if (value * 1_000 <= longest) return value * 1_000
  return Math.min(longest, value < leastMoment ? value : Math.max(0, momentOf(value) - now))
}
