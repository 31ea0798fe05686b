/**
 * Numbers and times as people read them, in the chosen language and time zone.
 */
import { languageAtom, zoneAtom } from "../state/preferences.ts"
import { registry } from "../state/registry.ts"

const locale = (): string => registry.get(languageAtom) === "zh" ? "zh-CN" : "en-GB"

/** The chosen time zone by its name in `Intl`. */
export const timeZone = (): string =>
  registry.get(zoneAtom) === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone

const formats = new Map<string, Intl.DateTimeFormat>()

/** One format per language, zone and shape: making one is slow. */
const format = (milliseconds: number, shape: Intl.DateTimeFormatOptions): string => {
  const key = `${locale()} ${timeZone()} ${JSON.stringify(shape)}`
  const known = formats.get(key)
  if (known !== undefined) return known.format(milliseconds)
  const made = new Intl.DateTimeFormat(locale(), { timeZone: timeZone(), ...shape })
  formats.set(key, made)
  return made.format(milliseconds)
}

/** The short name of the chosen time zone: `UTC`, `CET`, `GMT+8`. */
export const zoneName = (milliseconds = Date.now()): string =>
  new Intl.DateTimeFormat(locale(), { timeZone: timeZone(), timeZoneName: "short" }).formatToParts(milliseconds)
    .find(({ type }) => type === "timeZoneName")?.value ?? timeZone()

/** A number with thousands separators. */
export const number = (value: number): string => value.toLocaleString(locale())

/** A number in at most 5 characters: `950`, `10k`, `1.5M`, `2.25G`. */
export const compact = (value: number): string => {
  for (const [unit, sign] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    // A value that rounds up to the unit has the unit.
    if (Math.abs(value) >= unit * 0.9995) return `${Number((value / unit).toPrecision(3))}${sign}`
  }
  return String(Number(value.toPrecision(3)))
}

/** A share in percent: `0 %`, `0.4 %`, `19 %`; `–` of nothing. */
export const percent = (part: number, whole: number): string => {
  if (whole === 0) return "–"
  const share = (part / whole) * 100
  return `${share > 0 && share < 10 ? Number(share.toFixed(1)) : Math.round(share)} %`
}

/** A duration: `0.4 s`, `12 s`, `3 min 05 s`, `2 h 07 min`. */
export const duration = (milliseconds: number): string => {
  const seconds = Math.max(0, milliseconds) / 1000
  if (seconds < 10) return `${seconds.toFixed(1)} s`
  if (seconds < 60) return `${Math.round(seconds)} s`
  const whole = Math.round(seconds)
  const pad = (value: number) => String(value).padStart(2, "0")
  return whole < 3600
    ? `${Math.floor(whole / 60)} min ${pad(whole % 60)} s`
    : `${Math.floor(whole / 3600)} h ${pad(Math.floor(whole / 60) % 60)} min`
}

/** A duration in whole seconds, for countdowns. */
export const countdown = (seconds: number): string =>
  seconds < 60 ? `${Math.max(0, Math.ceil(seconds))} s` : duration(Math.ceil(seconds) * 1000)

/** A short duration to the millisecond: `12 ms`, `1.25 s`, `75 s`. */
export const elapsed = (milliseconds: number): string =>
  milliseconds < 1000
    ? `${Math.round(milliseconds)} ms`
    : `${(milliseconds / 1000).toFixed(milliseconds < 10_000 ? 2 : 1)} s`

/** The time of day. */
export const timeOfDay = (milliseconds: number): string => format(milliseconds, { timeStyle: "medium" })

/** The time of day to the minute. */
export const minuteOfDay = (milliseconds: number): string => format(milliseconds, { timeStyle: "short" })

/** The day, without the year: `21 Nov`. */
export const dayOf = (milliseconds: number): string => format(milliseconds, { day: "numeric", month: "short" })

/** The day with its year. */
export const date = (milliseconds: number): string => format(milliseconds, { dateStyle: "medium" })

/** Day and time. */
export const dateTime = (milliseconds: number): string =>
  format(milliseconds, { dateStyle: "medium", timeStyle: "medium" })

/** Day and time with the zone. */
export const exactTime = (milliseconds: number): string => `${dateTime(milliseconds)} ${zoneName(milliseconds)}`

/** The time of day if it is today; otherwise the day and the time of day. */
export const when = (milliseconds: number, now = Date.now()): string =>
  date(milliseconds) === date(now) ? timeOfDay(milliseconds) : `${dayOf(milliseconds)} ${timeOfDay(milliseconds)}`

const spans = [["second", 60], ["minute", 60], ["hour", 24], ["day", Number.POSITIVE_INFINITY]] as const

/** How long ago a time is: `3 sec ago`, `5 min ago`, `2 days ago`; the day after two weeks. */
export const ago = (milliseconds: number, now: number): string => {
  let left = Math.max(0, Math.round((now - milliseconds) / 1000))
  if (left > 14 * 24 * 3600) return date(milliseconds)
  for (const [unit, length] of spans) {
    if (left < length) {
      return new Intl.RelativeTimeFormat(locale(), { numeric: "always", style: "short" }).format(-left, unit)
    }
    left = Math.floor(left / length)
  }
  return date(milliseconds)
}

/** An exact decimal amount of a currency: `0.0125 USD`, at least two places after the point. */
export const money = (amount: string, currency: string | null | undefined): string => {
  const [whole = "0", fraction = ""] = amount.split(".")
  const places = fraction.replace(/0+$/, "").padEnd(2, "0")
  return `${number(Number(whole))}.${places}${currency ? ` ${currency}` : ""}`
}

/** A size: `512 B`, `1.5 KiB`, `20.0 MiB`. */
export const bytes = (size: number): string => {
  if (size < 1024) return `${size} B`
  const kib = size / 1024
  return kib < 1024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1024).toFixed(1)} MiB`
}
