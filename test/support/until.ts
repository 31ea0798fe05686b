/**
 * Polling for conditions without an event to wait for: in another process, a store, a server's page. The result does not depend on the
 * duration; the test's own time limit ends an endless wait.
 */
import * as Effect from "effect/Effect"

/** The pause between two polls, so that the polled process gets CPU time. */
const breath = () => new Promise((resolve) => setTimeout(resolve, 5))

/** Polls until the condition holds. */
export const untilHolds = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!await holds()) await breath()
}

/** The same for a condition that is an effect. */
export const untilTrue = <E, R>(holds: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
  Effect.flatMap(holds, (held) => held ? Effect.void : Effect.andThen(Effect.promise(breath), untilTrue(holds)))

/** The same for a synchronous condition. */
export const until = (holds: () => boolean): Effect.Effect<void> => Effect.promise(() => untilHolds(holds))
