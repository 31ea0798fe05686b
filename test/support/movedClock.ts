/**
 * The running clock, which a test moves on: what sleeps until a moment that has passed wakes, and nobody waits for hours. It may
 * also stand still but for that.
 */
import { Clock, Duration, Effect } from "effect"

export interface MovedClock extends Clock.Clock {
  /** Lets so many milliseconds pass, on the wall and monotonic. */
  readonly move: (millis: number) => void
  /** The milliseconds that each one who sleeps has left: whether a time limit is being waited for. */
  readonly sleeping: () => ReadonlyArray<number>
}

export interface MovedClockOptions {
  /** Stands still unless it is moved: no time limit is ever reached because the machine is slow. */
  readonly still?: boolean
  /** Where its wall clock starts, in milliseconds of the epoch: now, unless a test shows times. */
  readonly wall?: number
}

interface Sleeper {
  readonly due: number
  readonly wake: () => void
}

export const makeMovedClock = ({ still = false, wall: startsAt }: MovedClockOptions = {}): MovedClock => {
  const clock = Effect.runSync(Clock.Clock)
  const sleepers = new Set<Sleeper>()
  let moved = 0
  const since = (nanos: () => bigint) => {
    const first = nanos()
    // One that stands still does so at a whole millisecond, so that what is due in so many is due after exactly as many.
    const start = still ? first - first % 1_000_000n : first
    return () => (still ? start : nanos()) + BigInt(Math.round(moved * 1e6))
  }
  const monotonic = since(() => clock.monotonicTimeNanosUnsafe())
  const realWall = since(() => clock.currentTimeNanosUnsafe())
  const shift = startsAt === undefined ? 0n : BigInt(startsAt) * 1_000_000n - realWall()
  const wall = () => realWall() + shift
  const millis = () => Number(wall() / 1_000_000n)
  const now = () => Number(monotonic()) / 1e6
  const move = (by: number) => {
    moved += by
    const at = now()
    for (const sleeper of sleepers) if (sleeper.due <= at) sleeper.wake()
  }
  /** Runs after a while of the machine's time; gives what takes it back. */
  const later = (wait: number, wake: () => void) => {
    if (still) return () => undefined
    const timer = setTimeout(wake, Math.min(wait, 2 ** 31 - 1))
    return () => clearTimeout(timer)
  }
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
          forget()
          resume(Effect.void)
        }
        const sleeper: Sleeper = { due: now() + wait, wake }
        sleepers.add(sleeper)
        const takeBack = later(wait, wake)
        const forget = () => {
          takeBack()
          sleepers.delete(sleeper)
        }
        return Effect.sync(forget)
      }),
    move,
    sleeping: () => [...sleepers].map(({ due }) => due - now())
  }
}
