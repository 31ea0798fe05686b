/**
 * What a server says of an account's quota: windows, each a share that is used and resets at a known time. Pure: from headers, events and
 * the bodies of errors.
 *
 * Servers send these at their own discretion. A value that is no number, is negative, or comes without a reset is left out.
 */
import { isRecord, type JsonRecord } from "./json.ts"
import { countdownOf, longestWait, momentOf } from "./statedTime.ts"
import { parseTimestamp } from "./time.ts"

/** `low` from 80 % on. */
export type QuotaStatus = "ok" | "low" | "exhausted"

/** A window of an account's quota. Times are Unix milliseconds. */
export interface QuotaWindow {
  /** Its length (`5h`), or what it counts (`tokens`). */
  readonly window: string
  /** The model, or a class of models as a part of their names; `null` for a window of the whole account. */
  readonly model: string | null
  /** 0 to 1, with four decimals. */
  readonly used: number
  readonly limit: number | null
  readonly remaining: number | null
  readonly resets_at: number
  readonly status: QuotaStatus
  readonly seen_at: number
  /** When a used-up window has something left again: at its reset, or earlier if it refills steadily. */
  readonly room_at: number
}

/** The headers of an answer that state limits, by their names in lower case. */
export type LimitHeaders = Readonly<Record<string, string>>

/** The windows that are kept of an account. */
export const mostWindows = 16

const units: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

/**
 * The length of a window in milliseconds: it resets no later than that from now. A window that names what it counts has a
 * minute or a day, which may have 25 hours.
 */
const lengthOf = (window: string): number => {
  const [, count, unit = ""] = /^(\d+)([mhd])/.exec(window) ?? []
  return count === undefined ? 25 * 3_600_000 : Math.min(longestWait, Number(count) * units[unit]!)
}

const lowFrom = 0.8

/** A decimal number of at least 0; `undefined` for anything else. */
const numberOf = (value: unknown): number | undefined => {
  const text = typeof value === "number" ? String(value) : typeof value === "string" ? value.trim() : ""
  return /^\d{1,15}(?:\.\d{1,15})?$/.test(text) ? Number(text) : undefined
}

const durationParts =
  /^(?:(\d{1,4})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,9}(?:\.\d{1,9})?)s)?(?:(\d{1,9}(?:\.\d{1,9})?)ms)?$/

/** Milliseconds of a duration such as `6m0s`, `12ms` or `7.5s`. */
const durationOf = (text: string): number | undefined => {
  const found = text.trim() === "" ? null : durationParts.exec(text.trim())
  if (found === null) return undefined
  const [days, hours, minutes, rest, millis] = found.slice(1).map((part) => Number(part ?? 0))
  return (((days! * 24 + hours!) * 60 + minutes!) * 60 + rest!) * 1_000 + millis!
}

/** A time in Unix seconds or milliseconds, as milliseconds. */
const unixTime = (value: unknown): number | undefined => {
  const time = numberOf(value)
  return time === undefined ? undefined : momentOf(time)
}

/** Milliseconds of a countdown of a window: a duration, or a number of seconds. */
const countdownTo = (value: unknown, window: string, now: number): number | undefined => {
  const seconds = numberOf(value)
  if (seconds !== undefined) return countdownOf(seconds, lengthOf(window), now)
  const duration = typeof value === "string" ? durationOf(value) : undefined
  return duration === undefined ? undefined : Math.min(lengthOf(window), duration)
}

/** What a source says of a window; the rest follows from it. */
interface Stated {
  readonly window: string
  readonly model: string | null
  readonly used: number | undefined
  readonly limit: number | undefined
  readonly remaining: number | undefined
  readonly resetsAt: number | undefined
  /** The window refills steadily, and has room after this time. */
  readonly roomAt: number | undefined
  /** What the server says itself of whether something is left. */
  readonly isOpen: boolean | undefined
}

const nothingStated = { limit: undefined, remaining: undefined, roomAt: undefined, isOpen: undefined }

/** A window as a source states it; `undefined` if something is missing. A window whose reset has passed is empty. */
const windowOf = (
  { isOpen, limit, model, remaining, resetsAt, roomAt, used, window }: Stated,
  now: number
): QuotaWindow | undefined => {
  if (used === undefined || resetsAt === undefined) return undefined
  const resets = Math.ceil(Math.min(resetsAt, now + lengthOf(window)))
  const share = resets <= now ? 0 : Math.min(1, used)
  const isExhausted = resets > now && (isOpen === undefined ? share >= 1 : !isOpen)
  return {
    window,
    model,
    used: Math.round(share * 10_000) / 10_000,
    limit: limit ?? null,
    remaining: resets <= now ? limit ?? null : remaining ?? null,
    resets_at: resets,
    status: isExhausted ? "exhausted" : share >= lowFrom ? "low" : "ok",
    seen_at: now,
    room_at: Math.min(resets, Math.ceil(roomAt ?? resets))
  }
}

/** The share of a limit that is used. */
const shareOf = (limit: number | undefined, remaining: number | undefined): number | undefined =>
  limit === undefined || limit === 0 || remaining === undefined ? undefined : Math.max(0, 1 - remaining / limit)

const unified = /^anthropic-ratelimit-unified-(5h|7d(?:_([a-z0-9_]{1,40}))?)-utilization$/
const counted = /^anthropic-ratelimit-(requests|tokens|input-tokens|output-tokens)-limit$/
const common = /^x-ratelimit-limit-(requests|tokens)$/
const codex = /^x-codex-(primary|secondary)-used-percent$/

const codexWindow = (minutes: number | undefined): string =>
  minutes === 300 ? "5h" : minutes === 10_080 ? "7d" : `${Math.round(minutes ?? 0)}m`

const ofCodex = (percent: unknown, minutes: unknown, resetAt: unknown, resetAfter: unknown, now: number): Stated => {
  const used = numberOf(percent)
  const length = numberOf(minutes)
  const window = codexWindow(length)
  const after = countdownTo(resetAfter, window, now)
  return {
    ...nothingStated,
    window,
    model: null,
    used: length === undefined || used === undefined ? undefined : used / 100,
    // The time beats the countdown.
    resetsAt: unixTime(resetAt) ?? (after === undefined ? undefined : now + after)
  }
}

const statedBy = (name: string, headers: LimitHeaders, model: string, now: number): Stated | undefined => {
  const value = headers[name]
  const ofUnified = unified.exec(name)
  if (ofUnified !== null) {
    const [, window = "", ofClass] = ofUnified
    const status = headers[`anthropic-ratelimit-unified-${window}-status`]?.trim()
    return {
      ...nothingStated,
      window,
      model: ofClass ?? null,
      used: numberOf(value),
      resetsAt: unixTime(headers[`anthropic-ratelimit-unified-${window}-reset`]),
      isOpen: status === undefined ? undefined : status !== "rejected"
    }
  }
  const kind = counted.exec(name)?.[1]
  if (kind !== undefined) {
    const limit = numberOf(value)
    const remaining = numberOf(headers[`anthropic-ratelimit-${kind}-remaining`])
    const resetsAt = parseTimestamp(headers[`anthropic-ratelimit-${kind}-reset`] ?? "")
    return {
      ...nothingStated,
      window: kind.replace("-", "_"),
      model,
      used: shareOf(limit, remaining),
      limit,
      remaining,
      resetsAt
    }
  }
  const unit = common.exec(name)?.[1]
  if (unit !== undefined) {
    const limit = numberOf(value)
    const remaining = numberOf(headers[`x-ratelimit-remaining-${unit}`])
    const duration = countdownTo(headers[`x-ratelimit-reset-${unit}`], unit, now)
    return {
      ...nothingStated,
      window: unit,
      model,
      used: shareOf(limit, remaining),
      limit,
      remaining,
      resetsAt: duration === undefined ? undefined : now + duration,
      roomAt: duration === undefined || limit === undefined ? undefined : now + duration / Math.max(1, limit)
    }
  }
  const place = codex.exec(name)?.[1]
  if (place === undefined) return undefined
  const field = (of: string) => headers[`x-codex-${place}-${of}`]
  return ofCodex(value, field("window-minutes"), field("reset-at"), field("reset-after-seconds"), now)
}

/**
 * The windows that the headers of an answer state, `mostWindows` at most. `model` is the one that was asked, and `now` Unix milliseconds.
 */
export const windowsOfHeaders = (headers: LimitHeaders, model: string, now: number): ReadonlyArray<QuotaWindow> => {
  const found: Array<QuotaWindow> = []
  for (const name of Object.keys(headers)) {
    const stated = statedBy(name, headers, model, now)
    const window = stated === undefined ? undefined : windowOf(stated, now)
    if (window !== undefined && found.push(window) === mostWindows) break
  }
  return found
}

/** The type of the event by which a Responses server states windows within a stream. */
export const quotaEvent = "codex.rate_limits"

/** The windows that an event `codex.rate_limits` states. */
export const windowsOfEvent = (event: unknown, now: number): ReadonlyArray<QuotaWindow> => {
  const limits = isRecord(event) && event["type"] === quotaEvent ? event["rate_limits"] : undefined
  if (!isRecord(limits)) return []
  return [limits["primary"], limits["secondary"]].flatMap((place) => {
    if (!isRecord(place)) return []
    const { reset_after_seconds, reset_at, used_percent, window_minutes } = place
    return windowOf(ofCodex(used_percent, window_minutes, reset_at, reset_after_seconds, now), now) ?? []
  })
}

/** Details that are read, and violations of each. */
const mostDetails = 16

const recordsOf = (value: unknown): ReadonlyArray<JsonRecord> =>
  Array.isArray(value) ? value.slice(0, mostDetails).filter(isRecord) : []

const errorOf = (body: unknown): JsonRecord => {
  const outer: unknown = Array.isArray(body) ? body[0] : body
  if (!isRecord(outer)) return {}
  return isRecord(outer["error"]) ? outer["error"] : outer
}

/** The names of the limits that an error of a content-generation server names. */
const quotaNames = (error: JsonRecord): ReadonlyArray<string> =>
  recordsOf(error["details"]).flatMap(({ violations }) =>
    recordsOf(violations).flatMap(({ quotaId, quotaMetric }) =>
      [quotaId, quotaMetric].filter((name) => typeof name === "string")
    )
  )

const perDay = /per_?day/i

/** True if an error names a limit that is counted by the day. */
export const isDailyQuota = (error: JsonRecord): boolean => quotaNames(error).some((name) => perDay.test(name))

const pacific = new Intl.DateTimeFormat("en-US", {
  timeZone: "America/Los_Angeles",
  hourCycle: "h23",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit"
})

const pacificTime = (time: number): ReadonlyArray<number> => pacific.format(time).split(":").map(Number)

/** The next midnight in Pacific time after `now`, when quotas of a day begin anew. Days of 23 and 25 hours count as they are. */
export const pacificMidnight = (now: number): number => {
  const second = Math.floor(now / 1_000) * 1_000
  const [hour = 0, minute = 0, seconds = 0] = pacificTime(second)
  const next = second + (24 * 3_600 - (hour * 3_600 + minute * 60 + seconds)) * 1_000
  const [there = 0] = pacificTime(next)
  return there === 0 ? next : there < 12 ? next - there * 3_600_000 : next + (24 - there) * 3_600_000
}

/** The windows that the body of a refusal states: a limit of the day, of the account or of the model that was asked. */
export const windowsOfError = (body: unknown, model: string, now: number): ReadonlyArray<QuotaWindow> => {
  const names = quotaNames(errorOf(body)).filter((name) => perDay.test(name))
  if (names.length === 0) return []
  const ofModel = names.some((name) => /per_?model/i.test(name))
  const stated = {
    ...nothingStated,
    window: "day",
    model: ofModel ? model : null,
    used: 1,
    resetsAt: pacificMidnight(now)
  }
  return [windowOf(stated, now)!]
}

/** Seconds that the details of an error ask to wait (`RetryInfo`). */
export const retryInfoOf = (error: JsonRecord): number | undefined => {
  for (const { retryDelay } of recordsOf(error["details"])) {
    const millis = typeof retryDelay === "string" && retryDelay.endsWith("s") ? durationOf(retryDelay) : undefined
    if (millis !== undefined) return millis / 1_000
  }
  return undefined
}

/**
 * A wait that the message of a limit states: "Please try again in 1m26.4s" (https://platform.openai.com/docs/guides/rate-limits), "Please retry after 26
 * seconds" (Azure), "Please retry in 34.07s" (Gemini), "Please wait 51 seconds before retrying" (GitHub Models).
 */
const waitWords =
  /(?:(?:try again|retry) (?:in|after)|please wait) ((?:\d{1,9}(?:\.\d{1,9})? ?(?:days?|hours?|minutes?|milliseconds?|seconds?|ms|[dhms])\b[ ,]{0,2}|\d{1,9}(?:\.\d{1,9})?[dhms]){1,5})/i

/** The longest wait that is read from words, in seconds. */
const longestInWords = 24 * 3_600

/** Seconds that the words of a limit ask to wait. */
export const waitInWords = (message: string): number | undefined => {
  const found = waitWords.exec(message.slice(0, 2_000))?.[1]
  if (found === undefined) return undefined
  const short = found.toLowerCase().replaceAll(/[ ,]/g, "").replaceAll(
    /(milliseconds?)|(day|hour|minute|second)s?/g,
    (_, isMillis: string | undefined, unit: string) => isMillis === undefined ? unit[0]! : "ms"
  )
  const millis = durationOf(short)
  return millis === undefined ? undefined : Math.min(longestInWords, millis / 1_000)
}

/** The headers of a refusal by which vendors state its reset, as seconds, a moment or a duration. */
const resetHeaders = ["ratelimit-reset", "x-ratelimit-reset", "x-ratelimit-reset-after", "ratelimitbysize-reset"]

/** Seconds until the reset that a header of a refusal states. */
export const resetOfHeaders = (header: (name: string) => string | undefined, now: number): number | undefined => {
  const waits = resetHeaders.flatMap((name) => countdownTo(header(name), "", now) ?? [])
  return waits.length === 0 ? undefined : Math.max(...waits) / 1_000
}

/** Headers that an error repeats of the server behind its own (https://openrouter.ai/docs/api-reference/errors). */
const repeatedHeaders = ({ metadata }: JsonRecord): JsonRecord =>
  isRecord(metadata) && isRecord(metadata["headers"]) ? metadata["headers"] : {}

/** Seconds until the latest reset that the body of a refusal states; `undefined` if it states none that is to come. */
export const resetOfError = (body: unknown, now: number): number | undefined => {
  const error = errorOf(body)
  const after = numberOf(error["resets_in_seconds"])
  const seconds = [after === undefined ? undefined : countdownOf(after, longestWait, now) / 1_000, retryInfoOf(error)]
    .filter((each) => each !== undefined)
  const times = [
    unixTime(error["resets_at"]),
    unixTime(repeatedHeaders(error)["X-RateLimit-Reset"]),
    isDailyQuota(error) ? pacificMidnight(now) : undefined
  ].flatMap((time) => time === undefined ? [] : (time - now) / 1_000)
  const most = Math.max(...seconds, ...times)
  return most > 0 ? Math.min(most, longestWait / 1_000) : undefined
}

/** A window as it is at a time: empty once its reset has passed. */
export const windowAt = (window: QuotaWindow, now: number): QuotaWindow => {
  if (window.resets_at <= now) return { ...window, used: 0, remaining: window.limit, status: "ok" }
  return window.status === "exhausted" && window.room_at <= now ? { ...window, status: "low" } : window
}

/** Identifies a window among those of its account. */
export const windowKey = ({ model, window }: Pick<QuotaWindow, "model" | "window">): string =>
  `${window}\n${model ?? ""}`

/** True if a window counts requests for a model. Of classes of models it names a part of their names. */
export const countsModel = (
  { model, window }: Pick<QuotaWindow, "model" | "window">,
  asked: { readonly id: string; readonly name: string }
): boolean => {
  if (model === null || model === asked.id) return true
  return /^\d+[dhm]_/.test(window) && (asked.name.includes(model) || asked.id.includes(model))
}

/** When the windows that are used up have something left again, in Unix milliseconds; 0 while none is used up. */
export interface QuotaPauses {
  readonly account: number
  readonly model: number
}

/** The pauses of an account, and of a model at it, that windows mean. Of several the latest one counts. */
export const pausesOf = (
  windows: Iterable<QuotaWindow>,
  asked: { readonly id: string; readonly name: string },
  now: number
): QuotaPauses => {
  let account = 0
  let model = 0
  for (const window of windows) {
    if (window.status !== "exhausted" || window.room_at <= now) continue
    if (window.model === null) account = Math.max(account, window.room_at)
    else if (countsModel(window, asked)) model = Math.max(model, window.room_at)
  }
  return { account, model }
}

/** Writes a window as one word, for the store. */
export const encodeWindow = ({ limit, remaining, resets_at, room_at, seen_at, status, used }: QuotaWindow): string =>
  [used, limit ?? "", remaining ?? "", resets_at, status, Math.round(seen_at), room_at].join(",")

/** Writes what identifies a window as one word. */
export const encodeKey = ({ model, window }: QuotaWindow): string =>
  `${encodeURIComponent(window)},${model === null ? "" : encodeURIComponent(model)}`

const decodeText = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** Writes windows as words with `;` between them, each after what identifies it. */
export const encodeWindows = (windows: Iterable<QuotaWindow>): string =>
  Array.from(windows, (window) => `${encodeKey(window)};${encodeWindow(window)}`).join(";")

/** Reads what `encodeWindows` has written, `mostWindows` at most. Leaves anything else out. */
export const decodeWindows = (text: string): ReadonlyArray<QuotaWindow> => {
  const words = text.split(";")
  const windows: Array<QuotaWindow> = []
  for (let i = 0; i + 1 < words.length && i < 2 * mostWindows; i += 2) {
    const window = decodeWindow(words[i]!, words[i + 1]!)
    if (window !== undefined) windows.push(window)
  }
  return windows
}

/** Reads a window that `encodeKey` and `encodeWindow` have written; `undefined` for anything else. */
export const decodeWindow = (key: string, value: string): QuotaWindow | undefined => {
  const [window, model] = key.split(",").map(decodeText)
  const [used, limit, remaining, resets, status, seen, room] = value.split(",")
  const numbers = [used, resets, seen, room].map(numberOf)
  const [share, resets_at, seen_at, room_at] = numbers
  if (window === undefined || model === undefined || numbers.includes(undefined)) return undefined
  if (status !== "ok" && status !== "low" && status !== "exhausted") return undefined
  return {
    window,
    model: model === "" ? null : model,
    used: Math.min(1, share!),
    limit: numberOf(limit) ?? null,
    remaining: numberOf(remaining) ?? null,
    resets_at: resets_at!,
    status,
    seen_at: seen_at!,
    room_at: room_at!
  }
}
