/**
 * Whether the gateway takes new requests, and how many are under way: what readiness, drain and shutdown go by.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

export class Lifecycle extends Context.Service<Lifecycle, {
  /** True once the gateway takes no new requests. */
  readonly isDraining: () => boolean
  /** Counts a request; the returned function says that it is over, its body included. */
  readonly begin: () => () => void
  /** Requests under way. */
  readonly active: () => number
  /** Ends when the gateway begins to take no new requests. */
  readonly draining: Effect.Effect<void>
  /** Takes no new requests from now on and waits until none is under way. */
  readonly drain: Effect.Effect<void>
}>()("model-gateway/server/Lifecycle") {
  static readonly layer: Layer.Layer<Lifecycle> = Layer.effect(
    Lifecycle,
    Effect.gen(function*() {
      const idle = yield* Deferred.make<void>()
      const begun = yield* Deferred.make<void>()
      let draining = false
      let active = 0
      const settle = () => {
        if (draining && active === 0) Deferred.doneUnsafe(idle, Effect.void)
      }
      return Lifecycle.of({
        isDraining: () => draining,
        active: () => active,
        draining: Deferred.await(begun),
        begin: () => {
          active++
          return () => {
            active--
            settle()
          }
        },
        drain: Effect.suspend(() => {
          draining = true
          Deferred.doneUnsafe(begun, Effect.void)
          settle()
          return Deferred.await(idle)
        })
      })
    })
  )
}
