/** A clock whose wall time can be set off from its monotonic time, as a corrected system clock is. */
import { Clock, Effect } from "effect"

export interface WallClock extends Clock.Clock {
  /** Milliseconds by which the wall clock is wrong. */
  offset: number
}

/** Over another clock, the running one by default. */
export const makeWallClock = (clock: Clock.Clock = Effect.runSync(Clock.Clock)): WallClock => {
  const wall: WallClock = {
    // A test clock is still one.
    ...clock,
    offset: 0,
    currentTimeMillisUnsafe: () => clock.currentTimeMillisUnsafe() + wall.offset,
    currentTimeMillis: Effect.sync(() => wall.currentTimeMillisUnsafe()),
    currentTimeNanosUnsafe: () => clock.currentTimeNanosUnsafe() + BigInt(wall.offset) * 1_000_000n,
    currentTimeNanos: Effect.sync(() => wall.currentTimeNanosUnsafe()),
    monotonicTimeNanosUnsafe: () => clock.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: clock.monotonicTimeNanos,
    sleep: (duration) => clock.sleep(duration)
  }
  return wall
}
