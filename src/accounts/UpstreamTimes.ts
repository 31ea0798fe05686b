/**
 * The tries of each upstream in the last five minutes: their number, their failures, and the times to the first event; and their numbers and
 * failures in the last hour, in steps of five minutes.
 *
 * Memory is bounded by the upstreams that were tried within an hour, each with five rings of `bucketCount` numbers and the steps.
 */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { addBucketPairs, bucketCount, bucketOf, bucketPairs, quantileOfBuckets } from "../domain/timeBuckets.ts"

/** The minutes that are kept, the current one included. */
const minutes = 5
const minuteMillis = 60_000

/** The steps of an hour, the current one included, and their length in minutes. */
export const steps = 12
const stepMinutes = 5

const TryCounts = Schema.Struct({
  requests: Schema.mutableKey(Schema.Int),
  errors: Schema.mutableKey(Schema.Int),
  /** The number of times in each bucket. */
  times: Schema.instanceOf(Uint32Array),
  /** The requests and the errors of each step of the hour, the oldest first. */
  hour: Schema.instanceOf(Uint32Array)
})

/** What is counted of an upstream. */
export type TryCounts = typeof TryCounts.Type

/** Counts of zero. */
export const noTries = (): TryCounts => ({ requests: 0, errors: 0, ...emptyRings() })

const emptyRings = () => ({ times: new Uint32Array(bucketCount), hour: new Uint32Array(2 * steps) })

/** Adds `from` to `into`. */
export const addTries = (into: TryCounts, from: TryCounts): void => {
  into.requests += from.requests
  into.errors += from.errors
  for (let i = 0; i < bucketCount; i++) into.times[i]! += from.times[i]!
  for (let i = 0; i < 2 * steps; i++) into.hour[i]! += from.hour[i]!
}

/** The time that a share of the counted times does not exceed; `null` without any. */
export const quantileOf = ({ times }: TryCounts, share: number): number | null => quantileOfBuckets(times, share)

const writeTries = ({ errors, hour, requests, times }: TryCounts): string =>
  [requests, errors, ...hour, ...bucketPairs(times)].join(" ")

const readTries = (text: string): TryCounts => {
  const [requests = 0, errors = 0, ...rest] = text.split(" ").map(Number)
  const { hour, times } = emptyRings()
  hour.set(rest.slice(0, hour.length))
  addBucketPairs(times, rest.slice(hour.length))
  return { requests, errors, times, hour }
}

/** Counts as text for other nodes: requests, errors, those of the steps, and each bucket that is not empty with its count. */
export const TriesText = Schema.String.check(Schema.isPattern(/^\d+(?: \d+)+$/)).pipe(
  Schema.decodeTo(TryCounts, SchemaTransformation.transform({ decode: readTries, encode: writeTries }))
)

interface Minute extends Omit<TryCounts, "hour"> {
  minute: number
}

/** What is kept of an upstream: its minutes, and the requests and errors of its steps, whose numbers stand beside them. */
interface Kept {
  readonly minutes: ReadonlyArray<Minute>
  readonly numbers: Float64Array
  readonly counts: Uint32Array
}

const emptyKept = (): Kept => ({
  minutes: Array.from({ length: minutes }, () => ({
    minute: -minutes,
    requests: 0,
    errors: 0,
    times: new Uint32Array(bucketCount)
  })),
  numbers: new Float64Array(steps).fill(-steps),
  counts: new Uint32Array(2 * steps)
})

const stepOf = (minute: number): number => Math.floor(minute / stepMinutes)

/** Counts the tries of upstreams. */
export class UpstreamTimes {
  readonly #now: () => number
  readonly #upstreams = new Map<string, Kept>()

  /** `now` is in milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Counts a try that begins. */
  began(upstream: string): void {
    this.#current(upstream).requests++
    this.#countStep(upstream, 0)
  }

  /** Counts the time of a try to its first event. */
  answered(upstream: string, millis: number): void {
    this.#current(upstream).times[bucketOf(millis)]!++
  }

  /** Counts a failure of the upstream, before or after the first event. */
  failed(upstream: string): void {
    this.#current(upstream).errors++
    this.#countStep(upstream, 1)
  }

  /** The counts of the last five minutes and of the steps of the hour by upstream. */
  recent(): ReadonlyMap<string, TryCounts> {
    const minute = this.#minute()
    const recent = new Map<string, TryCounts>()
    const oldest = stepOf(minute) - steps + 1
    const { hour: none } = emptyRings()
    for (const [upstream, kept] of this.#upstreams) {
      const sum = noTries()
      for (const each of kept.minutes) if (each.minute > minute - minutes) addTries(sum, { ...each, hour: none })
      kept.numbers.forEach((number, place) => {
        if (number < oldest) return
        sum.hour.set(kept.counts.subarray(2 * place, 2 * place + 2), 2 * (number - oldest))
      })
      if (sum.hour.some((count) => count > 0)) recent.set(upstream, sum)
    }
    return recent
  }

  #minute(): number {
    return Math.floor(this.#now() / minuteMillis)
  }

  #current(upstream: string): Minute {
    const minute = this.#minute()
    let kept = this.#upstreams.get(upstream)
    if (kept === undefined) {
      for (const [name, { numbers }] of this.#upstreams) {
        if (numbers.every((number) => number <= stepOf(minute) - steps)) this.#upstreams.delete(name)
      }
      kept = emptyKept()
      this.#upstreams.set(upstream, kept)
    }
    const current = kept.minutes[minute % minutes]!
    if (current.minute !== minute) {
      current.minute = minute
      current.requests = 0
      current.errors = 0
      current.times.fill(0)
    }
    return current
  }

  /** Counts a request (0) or an error (1) in the current step of an upstream that is kept. */
  #countStep(upstream: string, which: 0 | 1): void {
    const { counts, numbers } = this.#upstreams.get(upstream)!
    const number = stepOf(this.#minute())
    const place = number % steps
    if (numbers[place] !== number) {
      numbers[place] = number
      counts.fill(0, 2 * place, 2 * place + 2)
    }
    counts[2 * place + which]!++
  }
}
