/**
 * Whether the gateway accepts new requests, and the number of active ones. Readiness, drain and shutdown depend on it.
 */
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

export class Lifecycle extends Context.Service<Lifecycle, {
  /** True once the gateway rejects new requests. */
  readonly isDraining: () => boolean
  /** True from the stop signal on: the gateway reports that it is not ready, and may still accept requests. */
  readonly isStopping: () => boolean
  /** Reports from now on that the gateway is not ready, and closes connections after their reply. Requests are still accepted. */
  readonly announceStop: () => void
  /** Counts a request until the returned function is called, after the body is sent. */
  readonly begin: () => () => void
  readonly active: () => number
  /** Requests so far, the active ones included. */
  readonly begun: () => number
  /** True once connections close after their reply: during a drain, and when another worker takes the place of this one. */
  readonly isLeaving: () => boolean
  /** Closes connections after their reply from now on. Requests are still accepted. */
  readonly leave: () => void
  /** Completes when connections begin to close. */
  readonly leaving: Effect.Effect<void>
  /** Rejects new requests and waits for the active ones. */
  readonly drain: Effect.Effect<void>
}>()("model-gateway/server/Lifecycle") {
  static readonly layer: Layer.Layer<Lifecycle> = Layer.effect(
    Lifecycle,
    Effect.gen(function*() {
      const idle = yield* Deferred.make<void>()
      const begun = yield* Deferred.make<void>()
      let stopping = false
      let draining = false
      let leaving = false
      let active = 0
      let requests = 0
      const completeWhenIdle = () => {
        if (draining && active === 0) Deferred.doneUnsafe(idle, Effect.void)
      }
      const leave = () => {
        leaving = true
        Deferred.doneUnsafe(begun, Effect.void)
      }
      return Lifecycle.of({
        isDraining: () => draining,
        isStopping: () => stopping,
        announceStop: () => {
          stopping = true
          leave()
        },
        isLeaving: () => leaving,
        leave,
        active: () => active,
        begun: () => requests,
        leaving: Deferred.await(begun),
        begin: () => {
          active++
          requests++
          return () => {
            active--
            completeWhenIdle()
          }
        },
        drain: Effect.suspend(() => {
          draining = stopping = true
          leave()
          completeWhenIdle()
          return Deferred.await(idle)
        })
      })
    })
  )
}
