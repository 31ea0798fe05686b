/**
 * Waiting for what tells nobody when it happens: another process, a store, a server's own page. Nothing depends on how long it
 * takes; the test's own limit ends what never comes.
 */
import * as Effect from "effect/Effect"

/** Between two looks: time for those who are looked at, who may have to share a core with whoever looks. */
const breath = () => new Promise((resolve) => setTimeout(resolve, 5))

/** Looks until it holds. */
export const untilHolds = async (holds: () => boolean | Promise<boolean>): Promise<void> => {
  while (!await holds()) await breath()
}

/** The same for what is looked at by an effect. */
export const untilTrue = <E, R>(holds: Effect.Effect<boolean, E, R>): Effect.Effect<void, E, R> =>
  Effect.flatMap(holds, (held) => held ? Effect.void : Effect.andThen(Effect.promise(breath), untilTrue(holds)))

/** The same for what the test itself can see. */
export const until = (holds: () => boolean): Effect.Effect<void> => Effect.promise(() => untilHolds(holds))
