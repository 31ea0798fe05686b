/**
 * Retention: old hours are merged into days, old days are removed, and so are the counts of windows that are over.
 */
import * as Effect from "effect/Effect"
import { type Cooperative, eachCooperatively } from "../domain/stream/cooperative.ts"
import { type Batch, bucketId, type KeptUnit } from "./Batch.ts"
import { addSums, zero } from "./UsageEntry.ts"
import { dayLength, dayOf, hourLength } from "./windows.ts"

/** Days that a history is kept by default. */
export const defaultKeepDays = 400

/** Days after which hours are merged into days. */
const hourlyDays = 90

/** How long counts are kept from the beginning of their window: longer than any window that sums them. */
const keptFor: { readonly [Unit in KeptUnit]: number } = {
  minute: hourLength,
  hour: dayLength,
  day: 45 * dayLength
}

/** What is old at a time; all in milliseconds of Unix time. */
export interface RetentionCutoffs {
  /** Hours before this are merged into days. */
  readonly daysBefore: number
  /** Days before this are removed. */
  readonly removedBefore: number
  /** Counts of windows that began before these are removed. */
  readonly countsBefore: { readonly [Unit in KeptUnit]: number }
}

/** The cutoffs at a time. */
export const cutoffsAt = (now: number, keepDays: number): RetentionCutoffs => ({
  daysBefore: dayOf(now - hourlyDays * dayLength),
  removedBefore: dayOf(now - keepDays * dayLength),
  countsBefore: { minute: now - keptFor.minute, hour: now - keptFor.hour, day: now - keptFor.day }
})

/** Merges the old hours of a batch into days, and removes its old days and counts. */
export function* compactBatch(batch: Batch, cutoffs: RetentionCutoffs): Cooperative<void> {
  const { countsBefore, daysBefore, removedBefore } = cutoffs
  yield* eachCooperatively([...batch.buckets], ([id, bucket]) => {
    const day = dayOf(bucket.hour)
    if (bucket.hour >= daysBefore || (day === bucket.hour && day >= removedBefore)) return
    batch.buckets.delete(id)
    if (day < removedBefore) return
    const into = bucketId(day, bucket)
    const known = batch.buckets.get(into) ?? { ...bucket, hour: day, sums: zero() }
    addSums(known.sums, bucket.sums)
    batch.buckets.set(into, known)
  })
  yield* eachCooperatively([...batch.counts], ([id, { start, unit }]) => {
    if (start < countsBefore[unit]) batch.counts.delete(id)
  })
}

/** Compacts at once and then every hour, until the scope ends. */
export const compactHourly = (compact: Effect.Effect<void>) =>
  Effect.forkScoped(Effect.forever(Effect.andThen(compact, Effect.sleep("1 hour"))))
