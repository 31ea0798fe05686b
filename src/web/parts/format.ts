/**
 * Numbers and times as people read them, in the chosen language and time zone.
 */
import { languageAtom, zoneAtom } from "../state/preferences.ts"
import { registry } from "../state/registry.ts"

const locale = (): string => registry.get(languageAtom) === "zh" ? "zh-CN" : "en-GB"

/** The zone of the machine as the page opens: to ask for it is as slow as to make a format. */
const localZone = new Intl.DateTimeFormat().resolvedOptions().timeZone

/** The chosen time zone by its name in `Intl`. */
export const timeZone = (): string => registry.get(zoneAtom) === "utc" ? "UTC" : localZone

const formats = new Map<string, unknown>()

/** One format of a kind per language and options, of which there are few: making one is slow. */
const formatOf = <Options, Format>(
  Kind: new(locale: string, options: Options) => Format,
  options: Options,
  language = locale()
): Format => {
  const key = `${Kind.name} ${language} ${JSON.stringify(options)}`
  const known = formats.get(key) as Format | undefined
  if (known !== undefined) return known
  const made = new Kind(language, options)
  formats.set(key, made)
  return made
}

const timeFormat = (shape: Intl.DateTimeFormatOptions, language?: string): Intl.DateTimeFormat =>
  formatOf(Intl.DateTimeFormat, { timeZone: timeZone(), ...shape }, language)

const format = (milliseconds: number, shape: Intl.DateTimeFormatOptions): string =>
  timeFormat(shape).format(milliseconds)

/** The short name of the chosen time zone: `UTC`, `CET`, `GMT+8`. */
export const zoneName = (milliseconds = Date.now()): string =>
  timeFormat({ timeZoneName: "short" }).formatToParts(milliseconds)
    .find(({ type }) => type === "timeZoneName")?.value ?? timeZone()

/** A number with thousands separators. */
export const number = (value: number): string => formatOf(Intl.NumberFormat, {}).format(value)

/** A count: in full below 10,000, else in at most 5 characters: `950`, `12.4k`, `1.5M`, `2.25G`. */
export const compact = (value: number): string => {
  if (Math.abs(value) < 9_999.5) return number(Math.abs(value) < 100 ? Number(value.toPrecision(3)) : Math.round(value))
  for (const [unit, sign] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]] as const) {
    // A value that rounds up to the unit has the unit.
    if (Math.abs(value) >= unit * 0.9995) return `${Number((value / unit).toPrecision(3))}${sign}`
  }
  return number(value)
}

/** A share in percent: `0 %`, `0.4 %`, `19 %`; `–` of nothing. */
export const percent = (part: number, whole: number): string => {
  if (whole === 0) return "–"
  const share = (part / whole) * 100
  return `${share > 0 && share < 10 ? Number(share.toFixed(1)) : Math.round(share)} %`
}

const signed = (value: number, text: string): string => `${value > 0 ? "+" : value < 0 ? "−" : "±"}${text}`

/** From this share on a change is said by how many times there is now what was before. */
const manyTimes = 9.95

/** A change as a share of what was before: `+12 %`, `−0.4 %`, `±0 %`, `×13`. */
export const change = (share: number): string => {
  if (share >= manyTimes) return `×${number(Math.round(share + 1))}`
  const size = Math.abs(share) * 100
  const rounded = size < 9.95 ? Number(size.toFixed(1)) : Math.round(size)
  return signed(rounded === 0 ? 0 : share, `${number(rounded)} %`)
}

/** A difference of two shares in points of percent: `+1.2`. */
export const points = (difference: number): string => {
  const rounded = Number(Math.abs(difference * 100).toFixed(1))
  return signed(rounded === 0 ? 0 : difference, number(rounded))
}

const units = {
  en: { ms: "ms", s: "s", min: "min", h: "h" },
  zh: { ms: "毫秒", s: "秒", min: "分", h: "小时" }
} as const

/** An amount of time with its unit in the chosen language: `8 ms`. */
export const inUnit = (amount: string | number, unit: keyof typeof units.en): string =>
  `${amount} ${units[registry.get(languageAtom)][unit]}`

/** A duration: `8 ms`, `1.43 s`, `47 s`, `6 min 02 s`, `2 h 07 min`. */
export const duration = (milliseconds: number): string => {
  const given = Math.max(0, milliseconds)
  if (given < 999.5) return inUnit(Math.round(given), "ms")
  if (given < 9_995) return inUnit((given / 1000).toFixed(2), "s")
  const whole = Math.round(given / 1000)
  if (whole < 60) return inUnit(whole, "s")
  const pad = (value: number) => String(value).padStart(2, "0")
  const minutes = Math.floor(whole / 60)
  return whole < 3600
    ? `${inUnit(minutes, "min")} ${inUnit(pad(whole % 60), "s")}`
    : `${inUnit(Math.floor(whole / 3600), "h")} ${inUnit(pad(minutes % 60), "min")}`
}

/** The exact duration: `1,432 ms`. */
export const milliseconds = (value: number): string => inUnit(number(value), "ms")

/** A duration in whole seconds, for countdowns. */
export const countdown = (seconds: number): string => {
  const whole = Math.max(0, Math.ceil(seconds))
  return whole < 60 ? inUnit(whole, "s") : duration(whole * 1000)
}

/** The time of day. */
export const timeOfDay = (milliseconds: number): string => format(milliseconds, { timeStyle: "medium" })

/** The time of day to the minute. */
export const minuteOfDay = (milliseconds: number): string => format(milliseconds, { timeStyle: "short" })

/** The time of day to the minute if it is today; otherwise with the day. */
export const shortWhen = (milliseconds: number, now = Date.now()): string =>
  date(milliseconds) === date(now) ? minuteOfDay(milliseconds) : `${dayOf(milliseconds)} ${minuteOfDay(milliseconds)}`

/** The day, without the year: `21 Nov`. */
export const dayOf = (milliseconds: number): string => format(milliseconds, { day: "numeric", month: "short" })

/** The day with its year. */
export const date = (milliseconds: number): string => format(milliseconds, { dateStyle: "medium" })

/** A day that is given as its first millisecond in UTC, without the year. */
export const utcDay = (day: number): string => format(day, { day: "numeric", month: "short", timeZone: "UTC" })

/** A day that is given as its first millisecond in UTC, with its year. */
export const utcDate = (day: number): string => format(day, { dateStyle: "medium", timeZone: "UTC" })

/** The day of a time in the chosen zone, as its first millisecond in UTC. */
export const dayIn = (milliseconds: number): number => {
  const parts = timeFormat({ year: "numeric", month: "numeric", day: "numeric" }, "en").formatToParts(milliseconds)
  const part = (name: "year" | "month" | "day") => Number(parts.find(({ type }) => type === name)?.value)
  return Date.UTC(part("year"), part("month") - 1, part("day"))
}

const quarter = 15 * 60_000

/** When a day begins in the chosen zone; the day is given as its first millisecond in UTC. */
export const dayStart = (day: number): number => {
  // Zones are at most 14 hours ahead of UTC and 12 behind, in steps of a quarter of an hour.
  let time = day - 14 * 3_600_000
  while (dayIn(time) < day) time += quarter
  return time
}

/** Day and time. */
export const dateTime = (milliseconds: number): string =>
  format(milliseconds, { dateStyle: "medium", timeStyle: "medium" })

/** Day and time with the zone. */
export const exactTime = (milliseconds: number): string => `${dateTime(milliseconds)} ${zoneName(milliseconds)}`

/** The time of day if it is today; otherwise the day and the time of day. */
export const when = (milliseconds: number, now = Date.now()): string =>
  date(milliseconds) === date(now) ? timeOfDay(milliseconds) : `${dayOf(milliseconds)} ${timeOfDay(milliseconds)}`

const spans = [["second", 60], ["minute", 60], ["hour", 24], ["day", Number.POSITIVE_INFINITY]] as const

/** How long ago a time is: `18 s ago`, `5 min ago`, `3 h ago`, `2 days ago`; the day after two weeks. */
export const ago = (milliseconds: number, now: number): string => {
  let left = Math.max(0, Math.round((now - milliseconds) / 1000))
  if (left > 14 * 24 * 3600) return date(milliseconds)
  for (const [unit, length] of spans) {
    if (left < length) {
      const text = formatOf(Intl.RelativeTimeFormat, { numeric: "always", style: "narrow" }).format(-left, unit)
      return text.replace(" sec ", " s ").replace(" hr ", " h ")
    }
    left = Math.floor(left / length)
  }
  return date(milliseconds)
}

/** Places after the point of an amount: two from 1 upward, else two significant digits within four places. */
const placesOf = (size: number): number =>
  size >= 0.995 || size === 0 ? 2 : Math.min(4, Math.max(2, 1 - Math.floor(Math.log10(size))))

/** The most places that `money` shows. */
export const mostPlaces = 4

/** The places after the point that `money` shows of an amount. */
export const placesShown = (amount: string): number => placesOf(Math.abs(Number(amount)))

/** The symbol of a currency, `$`; a name that is no ISO code stands for itself. */
const symbolOf = (currency: string): string => {
  try {
    return formatOf(Intl.NumberFormat, { style: "currency", currency, currencyDisplay: "narrowSymbol" })
      .formatToParts(0).find(({ type }) => type === "currency")?.value ?? currency
  } catch {
    return currency
  }
}

/**
 * An amount as people read it: `$41.20`, `$0.034`, `<$0.0001`; `–` without an amount. A `currency` of `null` leaves the symbol out, as
 * in a table whose head has it. The exact amount belongs into a title: `exactMoney`.
 */
export const money = (amount: string | null | undefined, currency: string | null | undefined): string => {
  if (amount === null || amount === undefined) return "–"
  const value = Number(amount)
  const symbol = currency ? symbolOf(currency) : ""
  const isWord = symbol.length > 1 && /^\p{L}+$/u.test(symbol)
  const withSymbol = (sign: string, text: string) => isWord ? `${sign}${text} ${symbol}` : `${sign}${symbol}${text}`
  const size = Math.abs(value)
  if (size > 0 && size < 0.0001) return withSymbol("<", "0.0001")
  const places = placesOf(size)
  const text = formatOf(Intl.NumberFormat, { minimumFractionDigits: places, maximumFractionDigits: places }).format(
    size
  )
  return withSymbol(value < 0 ? "-" : "", text)
}

/** The exact decimal amount: `0.0125 USD`, at least two places after the point. */
export const exactMoney = (amount: string, currency: string | null | undefined): string => {
  const [whole = "0", fraction = ""] = amount.split(".")
  const places = fraction.replace(/0+$/, "").padEnd(2, "0")
  return `${number(Number(whole))}.${places}${currency ? ` ${currency}` : ""}`
}

/** A limit or budget of money, in full: `$50`, `$12.5`. */
export const fullMoney = (amount: string, currency: string | null | undefined): string => {
  const [whole = "0", fraction = ""] = amount.split(".")
  const places = fraction.replace(/0+$/, "")
  const text = `${number(Number(whole))}${places === "" ? "" : `.${places.padEnd(2, "0")}`}`
  const symbol = currency ? symbolOf(currency) : ""
  return symbol.length > 1 && /^\p{L}+$/u.test(symbol) ? `${text} ${symbol}` : `${symbol}${text}`
}

/** A size: `512 B`, `1.5 KiB`, `20 MiB`. */
export const bytes = (size: number): string => {
  if (size < 1024) return `${size} B`
  const [value, unit] = size < 1024 ** 2
    ? [size / 1024, "KiB"]
    : size < 1024 ** 3
    ? [size / 1024 ** 2, "MiB"]
    : [size / 1024 ** 3, "GiB"]
  return `${Number(value.toFixed(1))} ${unit}`
}

/** A text of the gateway as a sentence: with a capital and a full stop. */
export const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?。]$/.test(text) ? "" : "."}`
