/**
 * A running clock that a test can move forward: sleepers whose time has come wake immediately. Optionally it stands still between moves.
 */
import { Clock, Duration, Effect } from "effect"

export interface MovedClock extends Clock.Clock {
  /** Moves wall time and monotonic time forward by so many milliseconds. */
  readonly move: (millis: number) => void
  /** The remaining milliseconds of each sleeper. A test sees here that a time limit is being waited for. */
  readonly sleeping: () => ReadonlyArray<number>
}

export interface MovedClockOptions {
  /** Stands still unless moved, so that a slow machine never reaches a time limit. */
  readonly still?: boolean
  /** Start of the wall clock in milliseconds since 1970. Default: now. */
  readonly wall?: number
}

/** Milliseconds of a day: nanoseconds of more than a few months are not whole in a number. */
const day = 86_400_000

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
    // A still clock stands at a whole millisecond, so that a timer of n milliseconds is due after exactly n.
    const start = still ? first - first % 1_000_000n : first
    return () => (still ? start : nanos()) + BigInt(Math.round(moved * 1e6))
  }
  const ofMachine = since(() => clock.monotonicTimeNanosUnsafe())
  // What counts by minutes of the monotonic clock counts the same in each run of a still clock with a start of its own.
  const monotonic = still && startsAt !== undefined
    ? () => BigInt(startsAt % day) * 1_000_000n + BigInt(Math.round(moved * 1e6))
    : ofMachine
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
  /** Schedules by the machine's clock; returns the function that cancels it. */
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
