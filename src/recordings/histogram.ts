/** How many requests began in each part of a time, and how long they took: of one node, and of all nodes together. */
import type { Cooperative } from "../domain/stream/cooperative.ts"
import { addBucketPairs, bucketCount, bucketOf, bucketPairs, quantileOfBuckets } from "../domain/timeBuckets.ts"
import type { RequestRecord } from "./RequestRecord.ts"
import { Matcher, type RequestFilter, type SearchContext } from "./search.ts"

/** The most parts of a histogram. */
const mostParts = 120

/** Widths of a part in milliseconds, each a multiple of those before it, so that parts of several nodes join; beyond them whole days. */
const partWidths = [
  ...[1, 5, 15, 60].map((seconds) => seconds * 1_000),
  ...[5, 15, 60, 180, 360, 720, 1_440].map((minutes) => minutes * 60_000)
]

/** The least width of which `mostParts` parts cover the times from `from` to `to`. */
export const partWidth = (from: number, to: number): number => {
  const least = Math.max(1, to - from) / (mostParts - 1)
  let width = partWidths.find((width) => width >= least) ?? partWidths.at(-1)!
  while (width < least) width *= 2
  return width
}

/** Counts of the records of a part of the time: by outcome, and of durations in buckets (`domain/timeBuckets.ts`). */
export interface HistogramPart {
  /** The first millisecond. */
  readonly at: number
  readonly ok: number
  readonly failed: number
  readonly cancelled: number
  readonly open: number
  /** Pairs of bucket and count, of the records that are over. */
  readonly durations: ReadonlyArray<number>
}

/** The histogram of one node. */
interface HistogramCounts {
  readonly parts: ReadonlyArray<HistogramPart>
  /** False if the search of a text ended early. */
  readonly complete: boolean
}

/** Counts the records that match by the parts of the time in which they began. Parts without a record are left out. */
export function* countHistogram(
  records: Iterable<RequestRecord>,
  filter: RequestFilter,
  width: number,
  context: SearchContext
): Cooperative<HistogramCounts> {
  const matcher = new Matcher(filter, context)
  const parts = new Map<
    number,
    { ok: number; failed: number; cancelled: number; open: number; durations: Uint32Array }
  >()
  let complete = true
  for (const record of records) {
    if (matcher.slice.add(1)) yield matcher.slice.end()
    if (matcher.missed(record) !== "all") continue
    if (matcher.isSpent) {
      complete = false
      break
    }
    if (!(yield* matcher.holds(record))) continue
    const at = Math.floor(record.startedAt / width) * width
    let part = parts.get(at)
    if (part === undefined) {
      part = { ok: 0, failed: 0, cancelled: 0, open: 0, durations: new Uint32Array(bucketCount) }
      parts.set(at, part)
    }
    part[record.outcome]++
    if (record.endedAt !== undefined) part.durations[bucketOf(record.duration)]!++
  }
  return {
    parts: Array.from(parts, ([at, part]) => ({ ...part, at, durations: bucketPairs(part.durations) })),
    complete
  }
}

/** A part of a histogram over all nodes. */
export interface HistogramView extends Omit<HistogramPart, "durations"> {
  /** Milliseconds that 95 % of the records that are over stay below; `null` without any. */
  readonly p95_ms: number | null
}

/** Joins the parts of several nodes to those of a width that cover the times from `from` to `to`, also those without a record. */
export const joinHistograms = (
  all: Iterable<HistogramPart>,
  from: number,
  to: number,
  width: number
): ReadonlyArray<HistogramView> => {
  const first = Math.floor(from / width)
  const count = Math.min(mostParts, Math.max(1, Math.ceil(to / width) - first))
  const times = new Uint32Array(count * bucketCount)
  const parts = Array.from({ length: count }, (_, i) => ({
    at: (first + i) * width,
    ok: 0,
    failed: 0,
    cancelled: 0,
    open: 0
  }))
  for (const { at, cancelled, durations, failed, ok, open } of all) {
    const place = Math.floor(at / width) - first
    const part = parts[place]
    if (part === undefined) continue
    part.ok += ok
    part.failed += failed
    part.cancelled += cancelled
    part.open += open
    addBucketPairs(times, durations, place * bucketCount)
  }
  return parts.map((part, i) => ({ ...part, p95_ms: quantileOfBuckets(times, 0.95, i * bucketCount) }))
}
