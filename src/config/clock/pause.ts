/**
 * Waits between one try and the next, at the same server or of the same reply.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** The share of such a wait that passes: 1, and 0 where a test is not to wait. */
export const CurrentPace = Context.Reference<number>("model-gateway/clock/Pace", { defaultValue: () => 1 })

/** Waits for so many milliseconds, by `CurrentPace`. */
export const pause = (millis: number): Effect.Effect<void> =>
  Effect.flatMap(CurrentPace, (pace) => pace === 0 ? Effect.yieldNow : Effect.sleep(millis * pace))
