/**
 * The turns of work that takes no account: embeddings and token counts. They work on the gateway's own processor, so only so
 * many are at work at once; others wait in order.
 */
import type * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"

/** Requests that are at work at once. */
export const mostAtWork = 64

const turns = Semaphore.makeUnsafe(mostAtWork)

/** Does the work in its turn. */
export const counting: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R> = turns.withPermit
