/**
 * A running clock whose monotonic time a test moves forward by an hour. The gateway throttles wrong credentials by address; an hour
 * between calls avoids that. The wall clock does not move, so logins do not expire.
 */
import { Clock, Effect } from "effect"

const hour = 3_600_000_000_000n

export interface PatientClock {
  readonly clock: Clock.Clock
  /** Lets an hour pass. */
  readonly wait: () => void
}

export const makePatientClock = (): PatientClock => {
  const running = Effect.runSync(Clock.Clock)
  let passed = 0n
  const monotonicTimeNanosUnsafe = () => running.monotonicTimeNanosUnsafe() + passed
  return {
    clock: {
      currentTimeMillisUnsafe: () => running.currentTimeMillisUnsafe(),
      currentTimeMillis: running.currentTimeMillis,
      currentTimeNanosUnsafe: () => running.currentTimeNanosUnsafe(),
      currentTimeNanos: running.currentTimeNanos,
      monotonicTimeNanosUnsafe,
      monotonicTimeNanos: Effect.sync(monotonicTimeNanosUnsafe),
      sleep: (duration) => running.sleep(duration)
    },
    wait: () => {
      passed += hour
    }
  }
}
