/**
 * Retention: old hours are merged into days, old days are removed, and so are the counts of windows that are over.
 *
 * A clock may be wrong, so the history itself has to confirm the time before anything of it is merged or removed: a clock that
 * is ahead finds no usage of the days before. The counts of windows are kept by their number, whatever the time is.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { type Cooperative, eachCooperatively } from "../domain/stream/cooperative.ts"
import { formatTimestamp } from "../domain/time.ts"
import { type Batch, bucketId, type KeptUnit, keptUnits } from "./Batch.ts"
import { addSums, zero } from "./UsageEntry.ts"
import { dayLength, dayOf } from "./windows.ts"

/** Days that a history is kept by default. */
export const defaultKeepDays = 400

/** Days that the usage of sessions is kept by default. */
export const defaultSessionDays = 30

/** Days after which hours are merged into days. */
const hourlyDays = 90

/** How many windows with counts are kept: more than those that any window sums. */
const keptCounts: { readonly [Unit in KeptUnit]: number } = { minute: 60, hour: 24, day: 45 }

/** A history confirms a time by usage of so many days within the days before, the newest within the last few. */
export const confirming = { days: 3, within: 30 * dayLength, newest: 3 * dayLength }

/** What is old at a time; all in milliseconds of Unix time. */
export interface RetentionCutoffs {
  /** Hours before this are merged into days. */
  readonly daysBefore: number
  /** Days before this are removed. */
  readonly removedBefore: number
}

/** The time before which hours are merged into days of UTC. */
export const daysBeforeAt = (now: number): number => dayOf(now - hourlyDays * dayLength)

/** The cutoffs at a time. */
const cutoffsAt = (now: number, keepDays: number): RetentionCutoffs => ({
  daysBefore: daysBeforeAt(now),
  removedBefore: dayOf(now - keepDays * dayLength)
})

/** Hours of a history, in milliseconds of Unix time. */
export interface HistoryHours {
  /** `undefined` if the history is empty. */
  readonly oldest: number | undefined
  /** Hours up to the time asked for; those of its newest `confirming.days` days at least. */
  readonly newest: ReadonlyArray<number>
}

/** The hours of batches at a time. */
export function* hoursOf(batches: ReadonlyArray<Batch>, now: number): Cooperative<HistoryHours> {
  let oldest: number | undefined
  const days = new Set<number>()
  for (const { buckets } of batches) {
    yield* eachCooperatively(buckets.values(), ({ hour }) => {
      if (oldest === undefined || hour < oldest) oldest = hour
      if (hour <= now) days.add(dayOf(hour))
    })
  }
  return { oldest, newest: [...days] }
}

/** Whether a history confirms a time. */
const confirms = ({ newest }: HistoryHours, now: number): boolean => {
  const days = new Set(newest.filter((hour) => hour <= now && hour > now - confirming.within).map(dayOf))
  return days.size >= confirming.days && Math.max(...days) > now - confirming.newest
}

/** The time of a history, and what may be removed then. */
export interface Retention<E> {
  /** Milliseconds of Unix time. */
  readonly now: Effect.Effect<number>
  readonly isConfirmed: Effect.Effect<boolean, E>
  /** `undefined` while nothing is old, or the time is not confirmed. The latter is logged, once until the time is confirmed. */
  readonly cutoffs: Effect.Effect<RetentionCutoffs | undefined, E>
}

/** The retention without a usage history: nothing confirms its time. */
export const unconfirmed: Pick<Retention<never>, "isConfirmed" | "now"> = {
  now: Clock.currentTimeMillis,
  isConfirmed: Effect.succeed(false)
}

/** Makes the retention of a history. `keepDays` is read at each use. */
export const makeRetention = <E>(
  keepDays: () => number,
  hours: (now: number) => Effect.Effect<HistoryHours, E>,
  now: Effect.Effect<number> = Clock.currentTimeMillis
): Retention<E> => {
  let isDoubted = false
  return {
    now,
    isConfirmed: Effect.flatMap(now, (time) => Effect.map(hours(time), (found) => confirms(found, time))),
    cutoffs: Effect.gen(function*() {
      const time = yield* now
      const cutoffs = cutoffsAt(time, keepDays())
      const found = yield* hours(time)
      if (found.oldest === undefined || found.oldest >= cutoffs.daysBefore) return undefined
      const wasDoubted = isDoubted
      isDoubted = !confirms(found, time)
      if (!isDoubted) return cutoffs
      if (!wasDoubted) {
        yield* Effect.logWarning(
          "Old usage is kept because the clock may be wrong: " +
            `the history has too little usage of the days before ${formatTimestamp(time)}`
        )
      }
      return undefined
    })
  }
}

/** The first hour of sessions that is kept; `undefined` while the time is not confirmed. */
export const sessionsFrom = <E>({ isConfirmed, now }: Pick<Retention<E>, "isConfirmed" | "now">, days: number) =>
  Effect.flatMap(
    isConfirmed,
    (confirmed) => confirmed ? Effect.map(now, (time) => dayOf(time - days * dayLength)) : Effect.undefined
  )

/** Logs how many entries of a history were removed, if there were any. */
export const logRemoved = (count: number, [one, more]: readonly [one: string, more: string], before: number) =>
  count === 0
    ? Effect.void
    : Effect.logInfo(`Removed ${count} ${count === 1 ? one : more} from before ${formatTimestamp(before)}`)

/** The names of what `logRemoved` counts in a usage history. */
export const usageEntries = ["entry of usage", "entries of usage"] as const

/** Merges the old hours of a batch into days, and removes its old days; returns the number of removed entries. */
export function* compactBatch(batch: Batch, { daysBefore, removedBefore }: RetentionCutoffs): Cooperative<number> {
  let removed = 0
  yield* eachCooperatively([...batch.buckets], ([id, bucket]) => {
    const day = dayOf(bucket.hour)
    if (bucket.hour >= daysBefore || (day === bucket.hour && day >= removedBefore)) return
    batch.buckets.delete(id)
    if (day < removedBefore) {
      removed++
      return
    }
    const into = bucketId(day, bucket)
    const known = batch.buckets.get(into) ?? { ...bucket, hour: day, sums: zero() }
    addSums(known.sums, bucket.sums)
    batch.buckets.set(into, known)
  })
  return removed
}

/**
 * The first window whose counts are kept: the oldest of the newest ones that began by `now`. Later ones are kept too, so that a
 * clock that returns finds them. `before` returns the last window with counts that began before a time.
 */
export const firstKept = (
  unit: KeptUnit,
  now: number,
  before: (time: number) => number | undefined
): number => {
  let first = now + 1
  for (let i = 0; i < keptCounts[unit]; i++) {
    const start = before(first)
    if (start === undefined) return -Infinity
    first = start
  }
  return first
}

/** Removes the counts of a batch that are not kept. */
export function* dropCounts(batch: Batch, now: number): Cooperative<void> {
  for (const unit of keptUnits) {
    const starts = new Set<number>()
    yield* eachCooperatively(batch.counts.values(), (count) => {
      if (count.unit === unit && count.start <= now) starts.add(count.start)
    })
    const newestFirst = [...starts].sort((a, b) => b - a)
    let next = 0
    const first = firstKept(unit, now, () => newestFirst[next++])
    yield* eachCooperatively([...batch.counts], ([id, count]) => {
      if (count.unit === unit && count.start < first) batch.counts.delete(id)
    })
  }
}

/** Compacts immediately and then every hour, until the scope ends. */
export const compactHourly = (compact: Effect.Effect<void>) =>
  Effect.forkScoped(Effect.forever(Effect.andThen(compact, Effect.sleep("1 hour"))))
