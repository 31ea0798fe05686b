/**
 * Usage kept in memory.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { inSlices } from "../config/inSlices.ts"
import { eachSliced, type Sliced } from "../domain/stream/slices.ts"
import { Batch, type Bucket } from "./Batch.ts"
import { agesAt, tidyHourly } from "./tidying.ts"
import { addSums, zero } from "./UsageEntry.ts"
import { inPieces, makeReport, matches, sortSliced, type UsageQuery, type UsageReport } from "./UsageQuery.ts"
import type { UsageStoreOptions, UsageStoreShape } from "./UsageStoreShape.ts"
import { dayOf } from "./windows.ts"

/** Buckets that are held in memory; beyond them the oldest go. */
export const mostBuckets = 100_000

/** Days that a history is kept unless set. */
export const defaultKeepDays = 400

export interface MemoryOptions extends UsageStoreOptions {
  /** False where no history is wanted: only what limits need is counted. */
  readonly history?: boolean | undefined
  /** Why it is memory. */
  readonly detail?: string | undefined
  /** Buckets that are held; `mostBuckets` unless given. */
  readonly most?: number | undefined
}

/** What `detail` says where buckets had to go. */
export const droppedDetail = (dropped: number): string =>
  `the history in memory is full: ${dropped} of its oldest entries were dropped`

/** Sentences as one text; `null` for none. */
export const detailOf = (...parts: ReadonlyArray<string | undefined>): string | null =>
  parts.filter((part) => part !== undefined).join("; ") || null

/** The buckets that are asked for, in the order of their hours. */
export function* orderedBuckets(query: UsageQuery, ...batches: ReadonlyArray<Batch>): Sliced<ReadonlyArray<Bucket>> {
  const found: Array<Bucket> = []
  for (const batch of batches) {
    yield* eachSliced([...batch.buckets.values()], (bucket) => {
      if (matches(query, bucket)) found.push(bucket)
    })
  }
  return yield* sortSliced(found, (a, b) => a.hour - b.hour)
}

function* answer(query: UsageQuery, batch: Batch): Sliced<UsageReport> {
  return yield* makeReport(query, inPieces(yield* orderedBuckets(query, batch)))
}

/** Makes days of old hours, and removes old days and counts. */
export function* tidied(batch: Batch, now: number, keepDays: number): Sliced<void> {
  const { countsBefore, daysBefore, goneBefore } = agesAt(now, keepDays)
  yield* eachSliced([...batch.buckets], ([id, bucket]) => {
    const day = dayOf(bucket.hour)
    if (bucket.hour >= daysBefore) return
    if (day === bucket.hour && day >= goneBefore) return
    batch.buckets.delete(id)
    if (day < goneBefore) return
    const into = [day, bucket.key, bucket.model, bucket.account, bucket.style].join("\u0000")
    const known = batch.buckets.get(into)
    const sums = zero()
    addSums(sums, bucket.sums)
    if (known === undefined) batch.buckets.set(into, { ...bucket, hour: day, sums })
    else addSums(known.sums, sums)
  })
  yield* eachSliced([...batch.counts], ([id, { start, unit }]) => {
    if (start < countsBefore[unit]) batch.counts.delete(id)
  })
}

/** Makes a store in memory. */
export const makeMemoryStore = Effect.fnUntraced(function*(
  options: MemoryOptions = {}
): Effect.fn.Return<UsageStoreShape, never, Scope.Scope> {
  const { history = true, keepDays = () => defaultKeepDays, most = mostBuckets } = options
  const batch = new Batch()
  let dropped = 0
  const tidy = Effect.flatMap(
    Clock.currentTimeMillis,
    (now) => Effect.suspend(() => inSlices(tidied(batch, now, keepDays())))
  )
  yield* tidyHourly(tidy)
  return {
    add: (entry) => {
      batch.addCounts(entry)
      if (!history) return
      batch.addBucket(entry)
      if (batch.buckets.size > most && batch.dropOldest()) dropped++
    },
    query: (query) => Effect.suspend(() => inSlices(answer(query, batch))),
    counters: (key, now) => Effect.sync(() => batch.counters(key, now)),
    tidy,
    status: Effect.sync(() => ({
      kind: history ? "memory" as const : "off" as const,
      persistent: false,
      detail: detailOf(options.detail, dropped === 0 ? undefined : droppedDetail(dropped))
    }))
  }
})
