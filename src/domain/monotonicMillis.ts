/** What Effect's `Clock` has of a monotonic clock; floor 0 knows no more of it. */
export interface MonotonicSource {
  readonly monotonicTimeNanosUnsafe: () => bigint
}

/** Milliseconds since some fixed moment: for ages, delays and deadlines, which a corrected wall clock must not move. */
export const monotonicMillis = (clock: MonotonicSource): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6
