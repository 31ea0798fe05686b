/**
 * The tries of each upstream in the last five minutes: their number, their failures, and the times to the first event.
 *
 * Times are counted in fixed buckets, so that the counts of several nodes can be added. Memory is bounded by the upstreams that were tried
 * within five minutes, each with five rings of `bucketCount` numbers.
 */

/** The minutes that are kept, the current one included. */
const minutes = 5
const minuteMillis = 60_000

/** Buckets for each doubling of a time: a quantile is exact to 5 percent. */
const perDoubling = 8
/** The last bucket has all times from 2^20 milliseconds on, which are 17 minutes. */
const bucketCount = 20 * perDoubling + 1

const bucketOf = (millis: number): number =>
  millis <= 1 ? 0 : Math.min(bucketCount - 1, Math.ceil(Math.log2(millis) * perDoubling))

/** The middle of a bucket in milliseconds. */
const middleOf = (bucket: number): number => Math.round(2 ** ((bucket - 0.5) / perDoubling))

/** What is counted of an upstream. */
export interface TryCounts {
  requests: number
  errors: number
  /** The number of times in each bucket. */
  readonly times: Uint32Array
}

/** Counts of zero. */
export const noTries = (): TryCounts => ({ requests: 0, errors: 0, times: new Uint32Array(bucketCount) })

/** Adds `from` to `into`. */
export const addTries = (into: TryCounts, from: TryCounts): void => {
  into.requests += from.requests
  into.errors += from.errors
  for (let i = 0; i < bucketCount; i++) into.times[i]! += from.times[i]!
}

/** The time that a share of the counted times does not exceed; `null` without any. */
export const quantileOf = ({ times }: TryCounts, share: number): number | null => {
  let total = 0
  for (const count of times) total += count
  if (total === 0) return null
  let left = Math.max(1, Math.ceil(share * total))
  const bucket = times.findIndex((count) => (left -= count) <= 0)
  return middleOf(bucket)
}

/** Counts as text for other nodes: requests, errors, and each bucket that is not empty with its count. */
export const writeTries = ({ errors, requests, times }: TryCounts): string => {
  const words = [requests, errors]
  times.forEach((count, bucket) => {
    if (count > 0) words.push(bucket, count)
  })
  return words.join(" ")
}

/** Reads counts that another node has written. */
export const readTries = (text: string): TryCounts => {
  const [requests = 0, errors = 0, ...pairs] = text.split(" ").map(Number)
  const { times } = noTries()
  for (let i = 0; i + 1 < pairs.length; i += 2) times[pairs[i]!] = pairs[i + 1]!
  return { requests, errors, times }
}

interface Minute extends TryCounts {
  minute: number
}

/** Counts the tries of upstreams. */
export class UpstreamTimes {
  readonly #now: () => number
  readonly #upstreams = new Map<string, ReadonlyArray<Minute>>()

  /** `now` is in milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Counts a try that begins. */
  began(upstream: string): void {
    this.#current(upstream).requests++
  }

  /** Counts the time of a try to its first event. */
  answered(upstream: string, millis: number): void {
    this.#current(upstream).times[bucketOf(millis)]!++
  }

  /** Counts a failure of the upstream, before or after the first event. */
  failed(upstream: string): void {
    this.#current(upstream).errors++
  }

  /** The counts of the last five minutes by upstream. */
  recent(): ReadonlyMap<string, TryCounts> {
    const minute = this.#minute()
    const recent = new Map<string, TryCounts>()
    for (const [upstream, ring] of this.#upstreams) {
      const sum = noTries()
      for (const each of ring) if (each.minute > minute - minutes) addTries(sum, each)
      if (sum.requests > 0 || sum.errors > 0) recent.set(upstream, sum)
    }
    return recent
  }

  #minute(): number {
    return Math.floor(this.#now() / minuteMillis)
  }

  #current(upstream: string): Minute {
    const minute = this.#minute()
    let ring = this.#upstreams.get(upstream)
    if (ring === undefined) {
      for (const [name, kept] of this.#upstreams) {
        if (kept.every((each) => each.minute <= minute - minutes)) this.#upstreams.delete(name)
      }
      ring = Array.from({ length: minutes }, () => ({ minute: -minutes, ...noTries() }))
      this.#upstreams.set(upstream, ring)
    }
    const current = ring[minute % minutes]!
    if (current.minute !== minute) {
      current.minute = minute
      current.requests = 0
      current.errors = 0
      current.times.fill(0)
    }
    return current
  }
}
