/**
 * The turns of work that takes no account: embeddings and token counts. They work on the gateway's own processor, so only so
 * many are at work at once; others wait in order.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"

/** Requests that are at work at once. */
export const mostAtWork = 64

/** Work on the gateway's own processor. */
export class OwnWork extends Context.Service<OwnWork, {
  /** Does work in its turn. */
  readonly inTurn: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}>()("model-gateway/http/OwnWork") {
  static readonly layer: Layer.Layer<OwnWork> = Layer.effect(
    OwnWork,
    Effect.map(Semaphore.make(mostAtWork), (turns) => OwnWork.of({ inTurn: turns.withPermit }))
  )
}
