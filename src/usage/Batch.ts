/**
 * Usage summed in memory: the buckets of the history, and what each key has used of its windows. Weeks and months are sums of
 * days, so only minutes, hours and days are kept.
 */
import type { WindowName } from "../config/windowLimit.ts"
import { isKeyId } from "../domain/identity.ts"
import type { QuotaWindow } from "../domain/quota.ts"
import { type Cooperative, eachCooperatively } from "../domain/stream/cooperative.ts"
import {
  addElsewhere,
  addEntry,
  type Dimensions,
  dimensionsOf,
  onlyTarget,
  sessionDimensionsOf,
  type Sums,
  type UsageEntry,
  zero
} from "./UsageEntry.ts"
import { dayLength, windowAt } from "./windows.ts"

/** Sums of the requests that began within an hour, or a day once compacted, by all dimensions. */
export interface Bucket extends Dimensions {
  /** The hour's first millisecond. */
  readonly hour: number
  readonly sums: Sums
}

/** The windows that are kept for each key. */
export const keptUnits = ["minute", "hour", "day"] as const

export type KeptUnit = (typeof keptUnits)[number]

/** What a key used of one window that is kept, or an account or an upstream with a budget. */
interface KeyCount {
  /** The id of a key, the hash of an account, or an upstream's name after `@`. */
  readonly key: string
  readonly unit: KeptUnit
  readonly start: number
  requests: number
  tokens: number
  /** An amount of 10^-9, as in all counts here. */
  cost: bigint
}

/** Requests, tokens and cost that count for limits. */
interface Counts {
  readonly requests: number
  readonly tokens: number
  readonly cost?: bigint | undefined
}

/** What a key has used of the windows that contain a time. */
export interface KeyCounters {
  readonly windows: { readonly [Window in WindowName]: Counts }
  /** When the last admitted request began; `undefined` if unknown. */
  readonly lastUsedAt: number | undefined
}

/** The beginnings of the windows that contain a time, and the range of days that they are summed from. */
interface CountersAt {
  readonly minute: number
  readonly hour: number
  readonly week: number
  readonly month: number
  /** The first day of the range; `day` is the last one. */
  readonly firstDay: number
  readonly day: number
}

/** The beginnings of the windows that contain `now`. */
export const countersAt = (now: number): CountersAt => {
  const [minute, hour, day, week, month] = (["minute", "hour", "day", "week", "month"] as const)
    .map((window) => windowAt(window, now).start) as [number, number, number, number, number]
  return { minute, hour, day, week, month, firstDay: Math.min(week, month) }
}

const eachWindow = <A>(f: (window: WindowName) => A): { readonly [Window in WindowName]: A } => ({
  minute: f("minute"),
  hour: f("hour"),
  day: f("day"),
  week: f("week"),
  month: f("month")
})

/** Sums the counts of one key to its counters. */
export const sumCounters = (
  at: CountersAt,
  counts: Iterable<Omit<KeyCount, "key">>,
  lastUsedAt: number | undefined
): KeyCounters => {
  const windows = eachWindow(() => ({ requests: 0, tokens: 0, cost: 0n }))
  for (const { cost, requests, start, tokens, unit } of counts) {
    const add = (window: WindowName) => {
      windows[window].requests += requests
      windows[window].tokens += tokens
      windows[window].cost += cost
    }
    if (unit !== "day") {
      if (start === at[unit]) add(unit)
      continue
    }
    if (start > at.day) continue
    if (start === at.day) add("day")
    if (start >= at.week) add("week")
    if (start >= at.month) add("month")
  }
  return { windows, lastUsedAt }
}

const later = (a: number | undefined, b: number | undefined): number | undefined =>
  a === undefined ? b : b === undefined ? a : Math.max(a, b)

/** The sum of two counters of one key at one time. */
export const addCounters = (a: KeyCounters, b: KeyCounters): KeyCounters => ({
  windows: eachWindow((window) => ({
    requests: a.windows[window].requests + b.windows[window].requests,
    tokens: a.windows[window].tokens + b.windows[window].tokens,
    cost: (a.windows[window].cost ?? 0n) + (b.windows[window].cost ?? 0n)
  })),
  lastUsedAt: later(a.lastUsedAt, b.lastUsedAt)
})

const separator = "\u0000"

/** Identifies a bucket. */
export const bucketId = (
  hour: number,
  { account, agent, app, key, model, parent, session, style, target, upstream }: Dimensions
): string =>
  hour + separator + key + separator + model + separator + account + separator + style + separator + upstream +
  separator + target + separator + app + separator + session + separator + agent + separator + parent

/** The usage of one session of a key. */
export interface SessionUsage {
  readonly key: string
  readonly session: string
  /** When its last request began: milliseconds of Unix time. */
  at: number
  /** By `bucketId`. */
  readonly buckets: Map<string, Bucket>
}

/** Usage of sessions, by the hours, agents and apps of each. Who fills it bounds it with `takeOldest`. */
export class SessionTable {
  /** By key and session, the one used longest ago first. */
  readonly #sessions = new Map<string, SessionUsage>()
  #size = 0

  /** The number of buckets. */
  get size(): number {
    return this.#size
  }

  get sessions(): Iterable<SessionUsage> {
    return this.#sessions.values()
  }

  *buckets(): Generator<Bucket> {
    for (const { buckets } of this.#sessions.values()) yield* buckets.values()
  }

  /** Adds a request with all its costs. */
  add(entry: UsageEntry): void {
    const { counted, elsewhere } = entry
    // The beginning of a request that was never admitted has fractions, which no file takes.
    const at = Math.floor(entry.at)
    const dimensions = sessionDimensionsOf(entry)
    const { key, session } = dimensions
    const id = key + separator + session
    const known = this.#sessions.get(id)
    const usage = known ?? { key, session, at, buckets: new Map<string, Bucket>() }
    if (known !== undefined) this.#sessions.delete(id)
    this.#sessions.set(id, usage)
    usage.at = Math.max(usage.at, at)
    const hour = windowAt("hour", at).start
    const name = bucketId(hour, dimensions)
    let bucket = usage.buckets.get(name)
    if (bucket === undefined) {
      bucket = { hour, ...dimensions, sums: zero() }
      usage.buckets.set(name, bucket)
      this.#size++
    }
    addEntry(bucket.sums, entry)
    if (counted) { for (const part of elsewhere) addElsewhere(bucket.sums, part) }
  }

  /** Removes the session that was used longest ago, and returns it; `undefined` without a session. */
  takeOldest(): SessionUsage | undefined {
    for (const [id, usage] of this.#sessions) {
      this.#sessions.delete(id)
      this.#size -= usage.buckets.size
      return usage
    }
    return undefined
  }

  /** Removes buckets of the sessions that were used longest ago, and returns them; at most `most` of them. */
  take(most: number): ReadonlyArray<SessionUsage> {
    const taken: Array<SessionUsage> = []
    let left = most
    for (const [id, usage] of this.#sessions) {
      if (left === 0) break
      const some = [...usage.buckets].slice(0, left)
      for (const [name] of some) usage.buckets.delete(name)
      if (usage.buckets.size === 0) this.#sessions.delete(id)
      taken.push({ ...usage, buckets: new Map(some) })
      this.#size -= some.length
      left -= some.length
    }
    return taken
  }

  /** Removes the hours before a time, and sessions without others. */
  *removeBefore(time: number): Cooperative<void> {
    yield* eachCooperatively([...this.#sessions], ([id, usage]) => {
      if (this.#sessions.get(id) !== usage) return
      const { buckets } = usage
      for (const [name, { hour }] of buckets) {
        if (hour < time && buckets.delete(name)) this.#size--
      }
      if (buckets.size === 0) this.#sessions.delete(id)
    })
  }
}

/** What is kept of an account for the next start. */
export interface AccountState {
  /** Until when its server limits its rate, in Unix milliseconds; 0 without a pause. */
  readonly pausedUntil: number
  readonly windows: ReadonlyArray<QuotaWindow>
}

/** Usage of any number of requests. */
export class Batch {
  readonly buckets = new Map<string, Bucket>()
  readonly sessions = new SessionTable()
  readonly counts = new Map<string, KeyCount>()
  /** When each key was last used: milliseconds of Unix time. */
  readonly lastUsed = new Map<string, number>()
  /** The accounts that have changed, by their hashes, with what reads their states when they are written. */
  readonly accounts = new Map<string, () => AccountState>()

  get isEmpty(): boolean {
    return this.buckets.size === 0 && this.sessions.size === 0 && this.counts.size === 0 && this.lastUsed.size === 0 &&
      this.accounts.size === 0
  }

  /** Adds a request to the history: to its own bucket, and its other costs to those of who charges them. */
  addBucket(entry: UsageEntry): void {
    const { at, elsewhere, model } = entry
    const dimensions = dimensionsOf(entry)
    addEntry(this.#sums(at, dimensions), entry)
    for (const part of entry.counted ? elsewhere : []) {
      const { account, answerer = onlyTarget(model) } = part
      addElsewhere(this.#sums(at, { ...dimensions, account, ...answerer }), part)
    }
  }

  /** The sums of the bucket of a time. */
  #sums(at: number, dimensions: Dimensions): Sums {
    const hour = windowAt("hour", at).start
    const id = bucketId(hour, dimensions)
    let bucket = this.buckets.get(id)
    if (bucket === undefined) {
      bucket = { hour, ...dimensions, sums: zero() }
      this.buckets.set(id, bucket)
    }
    return bucket.sums
  }

  /** Adds a request to the counts of its key, if it counts for limits. */
  addCounts(entry: UsageEntry): void {
    const { at, completionTokens, cost = 0n, counted, key, promptTokens } = entry
    if (!counted || !isKeyId(key)) return
    this.lastUsed.set(key, Math.max(at, this.lastUsed.get(key) ?? 0))
    this.addUse(key, at, promptTokens + completionTokens, cost)
  }

  /** Adds a request of a key, or a try of an account or an upstream, to the counts of its limits. */
  addUse(key: string, at: number, tokens: number, cost: bigint): void {
    for (const unit of keptUnits) {
      const { start } = windowAt(unit, at)
      const id = unit + separator + start + separator + key
      let count = this.counts.get(id)
      if (count === undefined) {
        count = { key, unit, start, requests: 0, tokens: 0, cost: 0n }
        this.counts.set(id, count)
      }
      count.requests += 1
      count.tokens += tokens
      count.cost += cost
    }
  }

  /** What a key has used of the windows that contain `now`. */
  counters(key: string, now: number): KeyCounters {
    const at = countersAt(now)
    const found: Array<KeyCount> = []
    const look = (unit: KeptUnit, start: number) => {
      const count = this.counts.get(unit + separator + start + separator + key)
      if (count !== undefined) found.push(count)
    }
    look("minute", at.minute)
    look("hour", at.hour)
    for (let day = at.firstDay; day <= at.day; day += dayLength) look("day", day)
    return sumCounters(at, found, this.lastUsed.get(key))
  }

  /** Removes the oldest bucket of the history; returns false if there are no buckets. */
  dropOldest(): boolean {
    for (const id of this.buckets.keys()) return this.buckets.delete(id)
    return false
  }
}
