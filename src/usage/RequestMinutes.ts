/**
 * The requests of the last hour by minutes: outcomes, tokens, cost, and times to the first event; the targets that answered; their
 * errors by code; and the sums of the hour before.
 *
 * A request counts in the minute in which it ends. Each of 120 minutes has counts, `bucketCount` buckets, and at most `mostAnswered` pairs
 * of a model and a target. `ErrorCounts` has a bound of its own.
 */
import * as Schema from "effect/Schema"
import { formatDecimal } from "../domain/decimal.ts"
import type { Fault } from "../domain/fault.ts"
import { addBucketPairs, bucketCount, bucketOf, bucketPairs, quantileOfBuckets } from "../domain/timeBuckets.ts"
import { none } from "../domain/usageNames.ts"
import { CodeErrors, type CodeErrorsView, ErrorCounts } from "./ErrorCounts.ts"
import { isWithinHour, minuteMillis, minuteOf, MinuteRing, minutesKept } from "./MinuteRing.ts"
import { addCounts, countAmong, largestOf } from "./mostCounted.ts"
import type { UsageEntry } from "./UsageEntry.ts"

/** The pairs of a model and a target that a minute counts, and that a node sends. */
const mostAnswered = 200

/** What a finished request adds to its minute, beside its usage. Times are monotonic milliseconds. */
interface EndedRequest {
  readonly id: string
  readonly startedAt: number
  /** When the reply had its first event; `undefined` without one. */
  readonly firstEventAt: number | undefined
}

/** The requests of a minute or of an hour. Times are milliseconds, `null` without a first event. */
interface CountsView {
  readonly requests: number
  readonly ok: number
  readonly failed: number
  /** Those of `failed` that the caller is at fault for. */
  readonly refused: number
  readonly left: number
  readonly first_event_p50_ms: number | null
  readonly first_event_p95_ms: number | null
  readonly tokens: number
  /** A decimal number. */
  readonly cost: string
}

interface MinuteView extends CountsView {
  /** The minute's first millisecond in Unix time. */
  readonly at: number
}

/** The counts of a node as other nodes receive them. */
export const WrittenMinutes = Schema.Struct({
  /** The minute's number, requests that succeeded, failed, left and were refused, tokens, nanos of cost, then pairs of bucket and count. */
  minutes: Schema.Array(Schema.Array(Schema.Finite)),
  /** The sum of the hour before in the same form, behind the number of its last minute. */
  before: Schema.Array(Schema.Finite),
  /** The requests of models at targets, each as model, `separator` and target. */
  answered: Schema.Array(Schema.Tuple([Schema.String, Schema.Finite])),
  errors: Schema.Array(CodeErrors),
  /** When the node began to count, in Unix milliseconds. */
  since: Schema.Finite
})
export type WrittenMinutes = typeof WrittenMinutes.Type

/** The last hour: 60 minutes, the newest last, and the errors, the most frequent code first and the rest last. */
export interface HourView {
  /** When the oldest of the nodes began to count, in Unix milliseconds: a minute before it has no counts. */
  readonly since: number
  readonly minutes: ReadonlyArray<MinuteView>
  /** The hour before. */
  readonly before: CountsView
  readonly first_event_p50_ms: number | null
  readonly first_event_p95_ms: number | null
  /** The requests of each model at each target that answered them or was tried last, the most first. */
  readonly answered: ReadonlyArray<{ readonly model: string; readonly target: string; readonly requests: number }>
  readonly errors: ReadonlyArray<CodeErrorsView>
}

/** The counts of a minute. */
interface Minute {
  succeeded: number
  failed: number
  left: number
  /** Those of `failed` that the caller is at fault for. */
  refused: number
  tokens: number
  /** Of 10^-9, exact below nine million units. */
  cost: number
  /** By `bucketOf` the time to the first event. */
  readonly times: Uint32Array
  readonly answered: Map<string, number>
}

const emptyMinute = (): Minute => ({
  succeeded: 0,
  failed: 0,
  left: 0,
  refused: 0,
  tokens: 0,
  cost: 0,
  times: new Uint32Array(bucketCount),
  answered: new Map()
})

const separator = "\u0000"

const viewAnswered = ([pair, requests]: readonly [string, number]) => {
  const [model = "", target = ""] = pair.split(separator)
  return { model, target, requests }
}

/** The counts of a minute for other nodes, behind its number. */
const writeMinute = (
  number: number,
  { cost, failed, left, refused, succeeded, times, tokens }: Minute
): ReadonlyArray<number> => [number, succeeded, failed, left, refused, tokens, cost, ...bucketPairs(times)]

/** Counts the requests of one node, and adds those of others. */
export class RequestMinutes {
  readonly #since: number
  readonly #minutes = new MinuteRing(emptyMinute, 2)
  readonly #errors = new ErrorCounts()

  /** Counts from `since` on, in Unix milliseconds. */
  constructor(since: number) {
    this.#since = since
  }

  /** Counts a request that ends at `now`, in Unix milliseconds; `fault` says who has to act on its error. */
  add(entry: UsageEntry, { firstEventAt, id, startedAt }: EndedRequest, now: number, fault?: Fault): void {
    const { answerer, cost, counted, error, key, model, outcome } = entry
    const newest = minuteOf(now)
    const minute = this.#minutes.at(newest)
    minute[outcome]++
    if (outcome === "failed" && fault === "caller") minute.refused++
    minute.tokens += entry.promptTokens + entry.completionTokens
    if (counted && cost !== undefined) minute.cost += Number(cost)
    if (firstEventAt !== undefined) minute.times[bucketOf(firstEventAt - startedAt)]!++
    if (answerer !== undefined && answerer.target !== none) {
      countAmong(minute.answered, model + separator + answerer.target, mostAnswered)
    }
    if (error !== undefined) {
      this.#errors.add({ code: error, fault, id, key, model, upstream: answerer?.upstream ?? none }, newest, now)
    }
  }

  /** The hour that ends with the minute of `now`, as other nodes receive it. */
  written(now: number): WrittenMinutes {
    const newest = minuteOf(now)
    const minutes = [...this.#minutes.within(newest)]
    const answered = new Map<string, number>()
    for (const [, minute] of minutes) addCounts(answered, minute.answered)
    const before = emptyMinute()
    for (const [number, minute] of this.#minutes.within(newest - minutesKept)) {
      addWritten(before, writeMinute(number, minute))
    }
    return {
      minutes: minutes.map(([number, minute]) => writeMinute(number, minute)),
      before: writeMinute(newest - minutesKept, before),
      answered: largestOf(answered, mostAnswered),
      errors: this.#errors.written(newest),
      since: this.#since
    }
  }

  /** The hour that ends with the minute of `now`, with the counts of other nodes. */
  view(now: number, others: Iterable<WrittenMinutes> = []): HourView {
    const newest = minuteOf(now)
    const sum = new MinuteRing(emptyMinute)
    const before = emptyMinute()
    const answered = new Map<string, number>()
    const all = [this.written(now), ...others]
    for (const written of all) {
      for (const minute of written.minutes) {
        const [number = Number.NaN] = minute
        if (isWithinHour(number, newest)) addWritten(sum.at(number), minute)
      }
      addWritten(before, written.before)
      addCounts(answered, written.answered)
    }
    const times = new Uint32Array(bucketCount)
    for (const [, minute] of sum.within(newest)) minute.times.forEach((count, i) => (times[i]! += count))
    return {
      since: Math.min(...all.map(({ since }) => since)),
      minutes: Array.from({ length: minutesKept }, (_, i) => {
        const number = newest - minutesKept + 1 + i
        return { at: number * minuteMillis, ...viewCounts(sum.at(number)) }
      }),
      before: viewCounts(before),
      first_event_p50_ms: quantileOfBuckets(times, 0.5),
      first_event_p95_ms: quantileOfBuckets(times, 0.95),
      answered: largestOf(answered, mostAnswered).map(viewAnswered),
      errors: this.#errors.view(newest, all.slice(1).flatMap(({ errors }) => errors))
    }
  }
}

const viewCounts = ({ cost, failed, left, refused, succeeded, times, tokens }: Minute): CountsView => ({
  requests: succeeded + failed + left,
  ok: succeeded,
  failed,
  refused,
  left,
  first_event_p50_ms: quantileOfBuckets(times, 0.5),
  first_event_p95_ms: quantileOfBuckets(times, 0.95),
  tokens,
  cost: formatDecimal(BigInt(cost))
})

/** Adds the counts of a minute as a node has written them. */
const addWritten = (
  sum: Minute,
  [, succeeded = 0, failed = 0, left = 0, refused = 0, tokens = 0, cost = 0, ...pairs]: ReadonlyArray<number>
): void => {
  sum.succeeded += succeeded
  sum.failed += failed
  sum.left += left
  sum.refused += refused
  sum.tokens += tokens
  sum.cost += cost
  addBucketPairs(sum.times, pairs)
}
