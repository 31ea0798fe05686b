/** How long a request waits before it asks the same server again. */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { pause } from "../config/clock/retry.ts"

/** Milliseconds before the first and the second retry. */
const delays = [100, 400]

/** Largest random extension of a delay, as a share of it, so that requests that failed together are not retried together. */
const jitter = 0.25

/** Waits before the `count`-th retry (from 1) on the same server. */
export const retryDelay = (count: number): Effect.Effect<void> =>
  Effect.flatMap(
    Random.next,
    (random) => pause(delays[Math.min(count, delays.length) - 1]! * (1 + jitter * random))
  )
