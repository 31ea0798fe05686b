import type { Clock } from "effect/Clock"

/** Milliseconds since some fixed moment: for ages, delays and deadlines, which a corrected wall clock must not move. */
export const monotonicMillis = (clock: Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
