/**
 * Numbers and times as people read them.
 */
import { languageAtom } from "../state/preferences.ts"
import { registry } from "../state/registry.ts"

const locale = (): string => registry.get(languageAtom) === "zh" ? "zh-CN" : "en-GB"

/** A number with thousands separators. */
export const number = (value: number): string => value.toLocaleString(locale())

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
export const timeOfDay = (milliseconds: number): string =>
  new Date(milliseconds).toLocaleTimeString(locale(), { hour: "2-digit", minute: "2-digit", second: "2-digit" })

/** Day and time. */
export const dateTime = (milliseconds: number): string =>
  new Date(milliseconds).toLocaleString(locale(), { dateStyle: "medium", timeStyle: "medium" })

/** A size: `512 B`, `1.5 KiB`, `20.0 MiB`. */
export const bytes = (size: number): string => {
  if (size < 1024) return `${size} B`
  const kib = size / 1024
  return kib < 1024 ? `${kib.toFixed(1)} KiB` : `${(kib / 1024).toFixed(1)} MiB`
}
