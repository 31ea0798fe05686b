/**
 * How long a request waits before it is tried again at the same server.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { pause } from "../config/clock/retry.ts"

/** Milliseconds before the first retry and the second. */
const delays = [100, 400]

/** The delay grows by up to this share, at random, so that requests that failed together do not come back together. */
const jitter = 0.25

/** Waits before the `count`-th retry of a request, the first being 1. */
export const retryDelay = (count: number): Effect.Effect<void> =>
  Effect.flatMap(
    Random.next,
    (random) => pause(delays[Math.min(count, delays.length) - 1]! * (1 + jitter * random))
  )
