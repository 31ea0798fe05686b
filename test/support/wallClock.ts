/** A clock whose wall time can be shifted against its monotonic time, as by a correction of the system clock. */
import { Clock, Effect } from "effect"

export interface WallClock extends Clock.Clock {
  /** Offset of the wall clock in milliseconds. */
  offset: number
}

/** Wraps another clock, by default the running one. */
export const makeWallClock = (clock: Clock.Clock = Effect.runSync(Clock.Clock)): WallClock => {
  const wall: WallClock = {
    // Keeps the methods of a test clock.
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

/** Runs with a wall clock that a test can set, over the test's monotonic clock. */
export const withWallClock = <A, E, R>(effect: (clock: WallClock) => Effect.Effect<A, E, R>) =>
  Effect.flatMap(Clock.Clock, (running) => {
    const clock = makeWallClock(running)
    return Effect.provideService(effect(clock), Clock.Clock, clock)
  })
