/**
 * When usage grows old: hours become days, days go, and so do the counts of windows that are over.
 */
import * as Effect from "effect/Effect"
import type { KeptUnit } from "./Batch.ts"
import { dayLength, dayOf, hourLength } from "./windows.ts"

/** Days after which hours become days. */
const hourlyDays = 90

/** How long the counts of a window are kept after its beginning: longer than any window that they are summed up to. */
const keptFor: { readonly [Unit in KeptUnit]: number } = {
  minute: hourLength,
  hour: dayLength,
  day: 45 * dayLength
}

/** What is old at a time. */
export interface Ages {
  /** Hours before this become days. */
  readonly daysBefore: number
  /** What lies before this goes. */
  readonly goneBefore: number
  /** Counts of windows that began before these go. */
  readonly countsBefore: { readonly [Unit in KeptUnit]: number }
}

/** Works out what is old; all in milliseconds of Unix time. */
export const agesAt = (now: number, keepDays: number): Ages => ({
  daysBefore: dayOf(now - hourlyDays * dayLength),
  goneBefore: dayOf(now - keepDays * dayLength),
  countsBefore: { minute: now - keptFor.minute, hour: now - keptFor.hour, day: now - keptFor.day }
})

/** Tidies at the start and every hour, for the length of the scope. */
export const tidyHourly = (tidy: Effect.Effect<void>) =>
  Effect.forkScoped(Effect.forever(Effect.andThen(tidy, Effect.sleep("1 hour"))))
