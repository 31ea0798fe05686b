/**
 * What narrows the list of requests: its names in the address, the server's filter, and whether a request matches it.
 */
import { apps, cacheResults, missReasons, recordedStyles } from "../../../api.ts"
import type { RequestItem } from "../../state/client.ts"
import { defaultUpstream } from "../../state/names.ts"
import type { Zone } from "../../state/preferences.ts"
import type { RequestFilter } from "../../state/requests.ts"
import type { Query } from "../../state/route.ts"

export const outcomes = ["open", "ok", "failed", "cancelled"] as const

/** The facets in the order of their chips, with the name of each one's filter. */
export const facets = [
  ["outcome", "outcome"],
  ["code", "code"],
  ["model", "model"],
  ["key", "key"],
  ["account", "account"],
  ["upstream", "upstream"],
  ["app", "app"],
  ["session", "session"],
  ["style", "style"],
  ["prompt_cache", "prompt_cache"],
  ["slow", "min_ms"]
] as const

export type FacetName = (typeof facets)[number][0]

/** Filters that match a part of a value; in double quotes, the whole value. */
export const containing: ReadonlySet<string> = new Set(["key", "model", "account", "code"])

/** The filter for exactly this value of a facet. */
export const exactly = (filter: string, value: string): string => containing.has(filter) ? `"${value}"` : value

/** The value that a filter asks for exactly; `undefined` if it asks for a part. */
export const exactValue = (filter: string, wanted: string): string | undefined => {
  if (!containing.has(filter)) return wanted
  return wanted.length > 1 && wanted.startsWith(`"`) && wanted.endsWith(`"`) ? wanted.slice(1, -1) : undefined
}

/** Ranges that end now, in minutes. */
export const ranges = { "15m": 15, "1h": 60, "24h": 24 * 60, "7d": 7 * 24 * 60 } as const

export type Range = keyof typeof ranges

export const isRange = (text: string | undefined): text is Range => text !== undefined && Object.hasOwn(ranges, text)

/** The end of the year 9999, the last time that the server knows. */
const lastTime = Date.UTC(10_000, 0) - 1

/** Milliseconds of a time in the address, as the server reads it: Unix seconds or milliseconds, a day (UTC), or RFC 3339. */
export const readTime = (text: string | undefined): number | undefined => {
  if (text === undefined || text === "") return undefined
  const unix = Number(text)
  const time = Number.isNaN(unix) ? Date.parse(text) : unix * 1000 <= lastTime ? unix * 1000 : unix
  return Number.isNaN(time) ? undefined : time
}

const pad = (value: number, length = 2): string => String(value).padStart(length, "0")

/** A time as the value of a field for day and time, in the chosen zone. */
export const fieldOf = (time: number | undefined, zone: Zone): string => {
  if (time === undefined) return ""
  if (zone === "utc") return new Date(time).toISOString().slice(0, 19)
  const at = new Date(time)
  return `${pad(at.getFullYear(), 4)}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}T${pad(at.getHours())}:${
    pad(at.getMinutes())
  }:${pad(at.getSeconds())}`
}

/** The milliseconds of such a value; `undefined` of an empty one. */
export const timeOf = (field: string, zone: Zone): number | undefined => {
  const time = field === "" ? Number.NaN : Date.parse(zone === "utc" ? `${field}Z` : field)
  return Number.isNaN(time) ? undefined : time
}

/** Everything in the address that narrows the list. */
const narrowing = [
  "status",
  "outcome",
  "style",
  "key",
  "model",
  "account",
  "code",
  "upstream",
  "app",
  "session",
  "prompt_cache",
  "min_ms",
  "text",
  "range",
  "from",
  "to"
]

/** The values of the filter by the prompt cache. */
const cacheValues: ReadonlySet<string> = new Set([...cacheResults, ...missReasons])

/** The part of the address that narrows the list; names with values that no request can have are left out. */
export const narrowed = (query: Query): Query =>
  Object.fromEntries(narrowing.flatMap((name) => {
    const value = query[name] ?? ""
    const isKnown = name === "app"
      ? apps.some((app) => app === value)
      : name === "style"
      ? recordedStyles.some((style) => style === value)
      : name === "outcome"
      ? outcomes.some((outcome) => outcome === value)
      : name === "status"
      ? /^(open|ok|failed|cancelled|[1-5](\d\d|xx))$/.test(value)
      : name === "prompt_cache"
      ? cacheValues.has(value)
      : name === "min_ms"
      ? /^\d{1,12}$/.test(value)
      : name === "range"
      ? isRange(value)
      : true
    return value === "" || !isKnown ? [] : [[name, value]]
  }))

/** The address without what narrows the list and without a place in it. */
export const nothingNarrowed: Query = Object.fromEntries([...narrowing, "cursor", "row"].map((name) => [name, ""]))

/** The server's filter at a time. */
export const filterOf = (query: Query, now: number): RequestFilter => {
  const { range, ...rest } = narrowed(query)
  return isRange(range) ? { ...rest, from: String(now - ranges[range] * 60_000) } : rest
}

/** Whether a value matches: a part of it in any case, or the whole of it if `wanted` is in double quotes. */
const contains = (wanted: string, ...values: ReadonlyArray<string | null>): boolean => {
  const exact = exactValue("key", wanted)
  const part = wanted.toLowerCase()
  return values.some((value) =>
    value !== null && (exact === undefined ? value.toLowerCase().includes(part) : value === exact)
  )
}

/** The upstream of the last try; `undefined` before it. */
export const upstreamOf = ({ attempts, target }: RequestItem): string | undefined =>
  target === undefined ? attempts === 0 ? undefined : defaultUpstream : target.split("/")[0]

const isStatus = (wanted: string, { outcome, status }: RequestItem): boolean =>
  wanted === outcome || wanted === String(status) || (status !== null && wanted === `${Math.floor(status / 100)}xx`)

/**
 * Whether a request matches the filter, by the rules of the server; `undefined` if only the server knows: it searches texts, and
 * knows how long a request has been running.
 */
export const fits = (filter: RequestFilter, item: RequestItem): boolean | undefined => {
  const asks = (name: keyof RequestFilter, matches: (wanted: string) => boolean): boolean => {
    const wanted = filter[name]
    return wanted === undefined || wanted === "" || matches(wanted)
  }
  const isCertain = asks("status", (wanted) => isStatus(wanted, item)) &&
    asks("outcome", (wanted) => wanted === item.outcome) &&
    asks("style", (wanted) => wanted === item.style) &&
    asks("upstream", (wanted) => wanted === upstreamOf(item)) &&
    asks("app", (wanted) => wanted === item.app) &&
    asks("session", (wanted) => wanted === item.session) &&
    asks("prompt_cache", (wanted) => wanted === item.prompt_cache?.result || wanted === item.prompt_cache?.reason) &&
    asks("key", (wanted) => contains(wanted, item.key, item.key_name)) &&
    asks("model", (wanted) => contains(wanted, item.model, item.native_model)) &&
    asks("account", (wanted) => contains(wanted, item.account)) &&
    asks("code", (wanted) => contains(wanted, item.error)) &&
    asks("from", (wanted) => item.started_at >= (readTime(wanted) ?? Number.NEGATIVE_INFINITY)) &&
    asks("to", (wanted) => item.started_at < (readTime(wanted) ?? Number.POSITIVE_INFINITY)) &&
    asks("min_ms", (wanted) => item.duration_ms === null || item.duration_ms >= Number(wanted))
  if (!isCertain) return false
  const isOpen = !asks("min_ms", () => item.duration_ms !== null)
  return filter.text || isOpen ? undefined : true
}
