/** A time limit kept by the common list of deadlines, for what may take many waits. */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { Deadlines } from "./Deadlines.ts"

/**
 * Runs an effect in a fiber of its own that is interrupted when its time is over; what it leaves is cleaned up before
 * `late` is told. `extended` is asked then for milliseconds to add; none by default.
 */
export const within = <A, E, R, E2>(
  effect: Effect.Effect<A, E, R>,
  deadlines: Deadlines["Service"],
  millis: number,
  late: () => E2,
  extended: () => number = () => 0
): Effect.Effect<A, E | E2, R> =>
  Effect.flatMap(Effect.forkChild(effect, { startImmediately: true }), (fiber) => {
    const done = fiber.pollUnsafe()
    if (done !== undefined) return done
    return Effect.callback<A, E | E2>((resume) => {
      let isLate = false
      const deadline = deadlines.add(deadlines.now() + millis, (now) => {
        const more = extended()
        if (more > 0) {
          deadline.at = now + more
          return
        }
        isLate = true
        fiber.interruptUnsafe()
      })
      fiber.addObserver((exit) => {
        deadline.cancel()
        resume(isLate && exit._tag === "Failure" ? Effect.fail(late()) : exit)
      })
      return Effect.suspend(() => {
        deadline.cancel()
        return Fiber.interrupt(fiber)
      })
    })
  })
