/**
 * The tries of each upstream in the last five minutes: their number, their failures, and the times to the first event.
 *
 * Memory is bounded by the upstreams that were tried within five minutes, each with five rings of `bucketCount` numbers.
 */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { addBucketPairs, bucketCount, bucketOf, bucketPairs, quantileOfBuckets } from "../domain/timeBuckets.ts"

/** The minutes that are kept, the current one included. */
const minutes = 5
const minuteMillis = 60_000

const TryCounts = Schema.Struct({
  requests: Schema.mutableKey(Schema.Int),
  errors: Schema.mutableKey(Schema.Int),
  /** The number of times in each bucket. */
  times: Schema.instanceOf(Uint32Array)
})

/** What is counted of an upstream. */
export type TryCounts = typeof TryCounts.Type

/** Counts of zero. */
export const noTries = (): TryCounts => ({ requests: 0, errors: 0, times: new Uint32Array(bucketCount) })

/** Adds `from` to `into`. */
export const addTries = (into: TryCounts, from: TryCounts): void => {
  into.requests += from.requests
  into.errors += from.errors
  for (let i = 0; i < bucketCount; i++) into.times[i]! += from.times[i]!
}

/** The time that a share of the counted times does not exceed; `null` without any. */
export const quantileOf = ({ times }: TryCounts, share: number): number | null => quantileOfBuckets(times, share)

const writeTries = ({ errors, requests, times }: TryCounts): string =>
  [requests, errors, ...bucketPairs(times)].join(" ")

const readTries = (text: string): TryCounts => {
  const [requests = 0, errors = 0, ...pairs] = text.split(" ").map(Number)
  const { times } = noTries()
  addBucketPairs(times, pairs)
  return { requests, errors, times }
}

/** Counts as text for other nodes: requests, errors, and each bucket that is not empty with its count. */
export const TriesText = Schema.String.check(Schema.isPattern(/^\d+(?: \d+)+$/)).pipe(
  Schema.decodeTo(TryCounts, SchemaTransformation.transform({ decode: readTries, encode: writeTries }))
)

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
