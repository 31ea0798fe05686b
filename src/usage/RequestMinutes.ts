/**
 * The requests of the last hour by minutes: outcomes, tokens, and times to the first event; and their errors by code.
 *
 * A request counts in the minute in which it ends. Counts are in arrays of fixed length: 60 minutes with `bucketCount` buckets each,
 * and 60 minutes for each of at most `mostCodes` codes and the rest. A minute is identified by its number, so minutes without requests
 * are zero, and so are those that a changed clock has left behind or ahead.
 */
import * as Schema from "effect/Schema"
import { addBucketPairs, bucketCount, bucketOf, bucketPairs, quantileOfBuckets } from "../domain/timeBuckets.ts"
import type { Outcome, UsageEntry } from "./UsageEntry.ts"

const minuteMillis = 60_000
const minutesKept = 60

/** Codes of errors that are counted apart. */
const mostCodes = 20
/** Stands for all other codes. */
const otherCodes = "other"

/** What a finished request adds to its minute, beside its usage. Times are monotonic milliseconds. */
interface EndedRequest {
  readonly id: string
  readonly startedAt: number
  /** When the reply had its first event; `undefined` without one. */
  readonly firstEventAt: number | undefined
}

/** The requests of a minute. Times are milliseconds, `null` without a first event. */
interface MinuteView {
  /** The minute's first millisecond in Unix time. */
  readonly at: number
  readonly requests: number
  readonly ok: number
  readonly failed: number
  readonly left: number
  readonly first_event_p50_ms: number | null
  readonly first_event_p95_ms: number | null
  readonly tokens: number
}

/** The errors of a code within the hour. */
const CodeErrors = Schema.Struct({
  code: Schema.String,
  count: Schema.Int,
  /** Unix milliseconds of the last one. */
  last_at: Schema.Finite,
  last_request_id: Schema.String
})
export type CodeErrors = typeof CodeErrors.Type

/** The counts of a node as other nodes receive them. */
export const WrittenMinutes = Schema.Struct({
  /** The minute's number, requests that succeeded, failed and left, tokens, then pairs of bucket and count. */
  minutes: Schema.Array(Schema.Array(Schema.Finite)),
  errors: Schema.Array(CodeErrors),
  /** When the node began to count, in Unix milliseconds; nodes of before do not say it. */
  since: Schema.optionalKey(Schema.Finite)
})
export type WrittenMinutes = typeof WrittenMinutes.Type

/** The last hour: 60 minutes, the newest last, and the errors, the most frequent code first and the rest last. */
export interface HourView {
  /** When the oldest of the nodes began to count, in Unix milliseconds: a minute before it has no counts. */
  readonly since: number
  readonly minutes: ReadonlyArray<MinuteView>
  readonly first_event_p50_ms: number | null
  readonly first_event_p95_ms: number | null
  readonly errors: ReadonlyArray<CodeErrors>
}

interface CodeCount {
  /** The number of each minute, and its errors. */
  readonly numbers: Float64Array
  readonly counts: Uint32Array
  lastAt: number
  lastId: string
}

const numberAt = (time: number): number => Math.floor(time / minuteMillis)
const placeOf = (number: number): number => ((number % minutesKept) + minutesKept) % minutesKept
const outcomes = ["succeeded", "failed", "left"] as const satisfies ReadonlyArray<Outcome>

const moreFrequent = (a: CodeErrors, b: CodeErrors): number => b.count - a.count || (a.code < b.code ? -1 : 1)

/** Joins errors of one code. */
const joined = (code: string, a: CodeErrors, b: CodeErrors): CodeErrors => ({
  ...(b.last_at > a.last_at ? b : a),
  code,
  count: a.count + b.count
})

/** Adds errors up by code: at most `mostCodes` codes, and the rest as one. */
const sumErrors = (errors: Iterable<CodeErrors>): ReadonlyArray<CodeErrors> => {
  const byCode = new Map<string, CodeErrors>()
  for (const each of errors) {
    const known = byCode.get(each.code)
    byCode.set(each.code, known === undefined ? each : joined(each.code, known, each))
  }
  const rest = byCode.get(otherCodes)
  byCode.delete(otherCodes)
  const sorted = [...byCode.values()].sort(moreFrequent)
  const further = [...sorted.slice(mostCodes), ...(rest === undefined ? [] : [rest])]
  return further.length === 0
    ? sorted
    : [...sorted.slice(0, mostCodes), further.reduce((a, b) => joined(otherCodes, a, b), { ...further[0]!, count: 0 })]
}

/** Counts the requests of one node, and adds those of others. */
export class RequestMinutes {
  readonly #since: number
  /** The numbers of the minutes; a place is in use for one minute of each hour. */
  readonly #numbers = new Float64Array(minutesKept).fill(Number.NaN)
  /** One count for each of `outcomes`. */
  readonly #outcomes = new Uint32Array(minutesKept * outcomes.length)
  readonly #tokens = new Float64Array(minutesKept)
  readonly #times = new Uint32Array(minutesKept * bucketCount)
  readonly #codes = new Map<string, CodeCount>()

  /** Counts from `since` on, in Unix milliseconds. */
  constructor(since: number) {
    this.#since = since
  }

  /** Counts a request that ends at `now`, in Unix milliseconds. */
  add(
    { completionTokens, error, outcome, promptTokens }: UsageEntry,
    { firstEventAt, id, startedAt }: EndedRequest,
    now: number
  ): void {
    const place = this.#place(numberAt(now))
    this.#outcomes[place * outcomes.length + outcomes.indexOf(outcome)]!++
    this.#tokens[place]! += promptTokens + completionTokens
    if (firstEventAt !== undefined) this.#times[place * bucketCount + bucketOf(firstEventAt - startedAt)]!++
    if (error !== undefined) this.#addError(error, id, now)
  }

  /** The hour that ends with the minute of `now`, as other nodes receive it. */
  written(now: number): WrittenMinutes {
    const newest = numberAt(now)
    const minutes: Array<ReadonlyArray<number>> = []
    this.#numbers.forEach((number, place) => {
      if (!isWithin(number, newest)) return
      const counts = outcomes.map((_, i) => this.#outcomes[place * outcomes.length + i]!)
      minutes.push([number, ...counts, this.#tokens[place]!, ...bucketPairs(this.#times, place * bucketCount)])
    })
    return { minutes, errors: this.#errors(newest), since: this.#since }
  }

  /** The hour that ends with the minute of `now`, with the counts of other nodes. */
  view(now: number, others: Iterable<WrittenMinutes> = []): HourView {
    const newest = numberAt(now)
    const sum = new RequestMinutes(this.#since)
    let errors = this.#errors(newest)
    let since = this.#since
    for (const each of [this.written(now), ...others]) {
      sum.#addMinutes(each.minutes, newest)
    }
    for (const each of others) {
      errors = sumErrors([...errors, ...each.errors])
      since = Math.min(since, each.since ?? 0)
    }
    const minutes = Array.from({ length: minutesKept }, (_, i) => sum.#view(newest - minutesKept + 1 + i))
    const times = new Uint32Array(bucketCount)
    sum.#times.forEach((count, i) => (times[i % bucketCount]! += count))
    return {
      since,
      minutes,
      first_event_p50_ms: quantileOfBuckets(times, 0.5),
      first_event_p95_ms: quantileOfBuckets(times, 0.95),
      errors
    }
  }

  #view(number: number): MinuteView {
    const place = this.#place(number)
    const [ok = 0, failed = 0, left = 0] = this.#outcomes.subarray(place * outcomes.length)
    const start = place * bucketCount
    return {
      at: number * minuteMillis,
      requests: ok + failed + left,
      ok,
      failed,
      left,
      first_event_p50_ms: quantileOfBuckets(this.#times, 0.5, start),
      first_event_p95_ms: quantileOfBuckets(this.#times, 0.95, start),
      tokens: this.#tokens[place]!
    }
  }

  #addMinutes(minutes: WrittenMinutes["minutes"], newest: number): void {
    for (const [number = Number.NaN, ok = 0, failed = 0, left = 0, tokens = 0, ...pairs] of minutes) {
      if (!isWithin(number, newest)) continue
      const place = this.#place(number)
      for (const [i, count] of [ok, failed, left].entries()) this.#outcomes[place * outcomes.length + i]! += count
      this.#tokens[place]! += tokens
      addBucketPairs(this.#times, pairs, place * bucketCount)
    }
  }

  /** The place of a minute, cleared if another minute had it. */
  #place(number: number): number {
    const place = placeOf(number)
    if (this.#numbers[place] !== number) {
      this.#numbers[place] = number
      this.#outcomes.fill(0, place * outcomes.length, (place + 1) * outcomes.length)
      this.#tokens[place] = 0
      this.#times.fill(0, place * bucketCount, (place + 1) * bucketCount)
    }
    return place
  }

  #addError(code: string, id: string, now: number): void {
    const number = numberAt(now)
    const count = this.#codeCount(code, number)
    const place = placeOf(number)
    if (count.numbers[place] !== number) {
      count.numbers[place] = number
      count.counts[place] = 0
    }
    count.counts[place]!++
    count.lastAt = now
    count.lastId = id
  }

  /** The count of a code: its own, or that of the rest while `mostCodes` others have errors within the hour. */
  #codeCount(code: string, newest: number): CodeCount {
    const known = this.#codes.get(code)
    if (known !== undefined) return known
    if (this.#codes.size >= mostCodes) {
      for (const [name, count] of this.#codes) if (sumOf(count, newest) === 0) this.#codes.delete(name)
      const isFull = this.#codes.size - (this.#codes.has(otherCodes) ? 1 : 0) >= mostCodes
      if (isFull && code !== otherCodes) return this.#codeCount(otherCodes, newest)
    }
    const made: CodeCount = {
      numbers: new Float64Array(minutesKept).fill(Number.NaN),
      counts: new Uint32Array(minutesKept),
      lastAt: 0,
      lastId: ""
    }
    this.#codes.set(code, made)
    return made
  }

  #errors(newest: number): ReadonlyArray<CodeErrors> {
    const errors = Array.from(this.#codes, ([code, count]) => ({
      code,
      count: sumOf(count, newest),
      last_at: count.lastAt,
      last_request_id: count.lastId
    }))
    return sumErrors(errors.filter(({ count }) => count > 0))
  }
}

const isWithin = (number: number, newest: number): boolean => number > newest - minutesKept && number <= newest

/** The errors of the hour that ends with the minute `newest`. */
const sumOf = ({ counts, numbers }: CodeCount, newest: number): number => {
  let sum = 0
  for (let i = 0; i < minutesKept; i++) if (isWithin(numbers[i]!, newest)) sum += counts[i]!
  return sum
}
