/** The running clock, which a test moves on: what sleeps until a moment that has passed wakes, and nobody waits for hours. */
import { Clock, Duration, Effect } from "effect"

export interface MovedClock extends Clock.Clock {
  /** Lets so many milliseconds pass, on the wall and monotonic. */
  readonly move: (millis: number) => void
}

interface Sleeper {
  readonly due: number
  readonly wake: () => void
}

export const makeMovedClock = (): MovedClock => {
  const clock = Effect.runSync(Clock.Clock)
  const sleepers = new Set<Sleeper>()
  let moved = 0
  const monotonic = () => clock.monotonicTimeNanosUnsafe() + BigInt(moved) * 1_000_000n
  const wall = () => clock.currentTimeNanosUnsafe() + BigInt(moved) * 1_000_000n
  const millis = () => clock.currentTimeMillisUnsafe() + moved
  const now = () => Number(monotonic()) / 1e6
  return {
    ...clock,
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: wall,
    currentTimeNanos: Effect.sync(wall),
    monotonicTimeNanosUnsafe: monotonic,
    monotonicTimeNanos: Effect.sync(monotonic),
    sleep: (duration) =>
      Effect.callback<void>((resume) => {
        const wait = Duration.toMillis(duration)
        if (wait === Infinity) return
        const wake = () => {
          clearTimeout(timer)
          sleepers.delete(sleeper)
          resume(Effect.void)
        }
        const timer = setTimeout(wake, Math.min(wait, 2 ** 31 - 1))
        const sleeper: Sleeper = { due: now() + wait, wake }
        sleepers.add(sleeper)
        return Effect.sync(() => {
          clearTimeout(timer)
          sleepers.delete(sleeper)
        })
      }),
    move: (by) => {
      moved += by
      const at = now()
      for (const sleeper of sleepers) if (sleeper.due <= at) sleeper.wake()
    }
  }
}
