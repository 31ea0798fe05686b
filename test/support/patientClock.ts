/**
 * The running clock, whose monotonic time a test moves an hour on: wrong credentials are slowed by their address, and with an
 * hour before each call none is. The wall clock stays, and so does how long logins last.
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
