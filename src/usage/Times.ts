/**
 * How long requests took, as counts that can be added: histograms in the buckets of `domain/timeBuckets.ts`.
 *
 * A histogram has the buckets that are not empty, at most `bucketCount`. As text, each is `place=count`, with blanks between; a text that
 * has a place several times stands for the sum.
 */
import { bucketCount, bucketOf, quantileOfBuckets } from "../domain/timeBuckets.ts"

/** What is counted of a request: milliseconds, and tenths of a token a second. */
const timedNames = ["firstEvent", "duration", "queue", "rate"] as const

type TimedName = (typeof timedNames)[number]

/** Counts by place: the bucket, and so many for each of the names before. Places are stored: they and the order of names stay as they are. */
export type Times = Map<number, number>

const placesOfName = 1000
const placeCount = timedNames.length * placesOfName

/** Parts of a token a second that rates are counted in, so that slow replies differ. */
const ratePart = 10

/** A stream that is shorter, in milliseconds, or has fewer tokens has no rate. */
const shortestStream = 50
const fewestTokens = 2

/** What is measured of one request, in milliseconds. */
export interface Measured {
  /** From its beginning to the first event of the reply; `undefined` without one. */
  readonly firstEvent: number | undefined
  readonly duration: number
  /** In the queue for a slot. */
  readonly queued: number
  readonly completionTokens: number
}

const add = (into: Times, place: number, count: number): void => {
  into.set(place, (into.get(place) ?? 0) + count)
}

/** Adds a request. */
export const addMeasured = (into: Times, { completionTokens, duration, firstEvent, queued }: Measured): void => {
  const count = (name: TimedName, value: number) =>
    add(into, timedNames.indexOf(name) * placesOfName + bucketOf(value), 1)
  count("duration", duration)
  count("queue", queued)
  if (firstEvent === undefined) return
  count("firstEvent", firstEvent)
  const stream = duration - firstEvent
  if (stream >= shortestStream && completionTokens >= fewestTokens) {
    count("rate", completionTokens * 1000 * ratePart / stream)
  }
}

/** Adds all counts of others. */
export const addTimes = (into: Times, from: Times): void => from.forEach((count, place) => add(into, place, count))

/** The counts as text; empty without any. */
export const timesText = (times: Times): string => Array.from(times, ([place, count]) => `${place}=${count}`).join(" ")

const [equals, zero, nine] = ["=", "0", "9"].map((sign) => sign.charCodeAt(0)) as [number, number, number]

/** Adds the counts of a text; those of other places are left out. */
export const addTimesText = (into: Times, text: string): void => {
  let [place, number] = [0, 0]
  for (let i = 0; i <= text.length; i++) {
    const code = i < text.length ? text.charCodeAt(i) : 0
    if (code >= zero && code <= nine) number = number * 10 + code - zero
    else {
      if (code === equals) place = number
      else if (number > 0 && place < placeCount && place % placesOfName < bucketCount) add(into, place, number)
      number = 0
    }
  }
}

/** The texts of two sums as the text of their sum; `null` where neither has counts. */
export const sumOfTexts = (one: string | null, other: string | null): string | null => {
  if (one === null && other === null) return null
  const sum: Times = new Map()
  for (const text of [one, other]) if (text !== null) addTimesText(sum, text)
  return timesText(sum)
}

/** Percentiles of requests; `null` where none was measured. */
export interface Percentiles {
  readonly first_event_p50_ms: number | null
  readonly first_event_p95_ms: number | null
  readonly duration_p95_ms: number | null
  readonly queue_p95_ms: number | null
  readonly tokens_per_second_p50: number | null
}

/** The names of the percentiles, in the order of display. */
export const percentileNames = [
  "first_event_p50_ms",
  "first_event_p95_ms",
  "duration_p95_ms",
  "queue_p95_ms",
  "tokens_per_second_p50"
] as const satisfies ReadonlyArray<keyof Percentiles>

/** The counts of one sum at a time; nothing keeps them. */
const counts = new Uint32Array(placeCount)

/** The percentiles of what was counted, within 5 percent. */
export const percentilesOf = (times: Times | undefined): Percentiles => {
  counts.fill(0)
  times?.forEach((count, place) => (counts[place] = count))
  const quantile = (name: TimedName, share: number) =>
    quantileOfBuckets(counts, share, timedNames.indexOf(name) * placesOfName)
  const rate = quantile("rate", 0.5)
  return {
    first_event_p50_ms: quantile("firstEvent", 0.5),
    first_event_p95_ms: quantile("firstEvent", 0.95),
    duration_p95_ms: quantile("duration", 0.95),
    queue_p95_ms: quantile("queue", 0.95),
    tokens_per_second_p50: rate === null ? null : rate / ratePart
  }
}
