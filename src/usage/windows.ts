/**
 * The windows of limits: fixed, in UTC, weeks from Monday. Times are milliseconds of Unix time.
 */
import type { WindowName } from "../config/windowLimit.ts"

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
const week = 7 * day
/** 1 January 1970 was a Thursday. */
const firstMonday = 4 * day

/** A window from its first millisecond to the one after its last. */
interface Span {
  readonly start: number
  readonly end: number
}

const fixed = (time: number, length: number, offset = 0): Span => {
  const start = Math.floor((time - offset) / length) * length + offset
  return { start, end: start + length }
}

/** The window that contains a time. */
export const windowAt = (window: WindowName, time: number): Span => {
  switch (window) {
    case "minute":
      return fixed(time, minute)
    case "hour":
      return fixed(time, hour)
    case "day":
      return fixed(time, day)
    case "week":
      return fixed(time, week, firstMonday)
    case "month": {
      const date = new Date(time)
      const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
      return { start: Date.UTC(year, month), end: Date.UTC(year, month + 1) }
    }
  }
}

/** The beginning of the hour that contains a time. */
export const hourOf = (time: number): number => windowAt("hour", time).start

/** The beginning of the day that contains a time. */
export const dayOf = (time: number): number => windowAt("day", time).start

export const hourLength = hour
export const dayLength = day
