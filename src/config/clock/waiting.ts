/**
 * Waiting that a caller may leave, within work that it may not interrupt.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** Whether an interruption ends uninterruptible work that only waits: for its turn, or for another process. */
export const CanLeave = Context.Reference<boolean>("model-gateway/clock/CanLeave", { defaultValue: () => false })

/** Waits; interruptible if the caller can leave. */
export const whileWaiting = <A, E, R>(wait: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.flatMap(CanLeave, (canLeave) => canLeave ? Effect.interruptible(wait) : wait)
