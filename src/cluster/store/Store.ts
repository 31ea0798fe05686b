/**
 * The store that several nodes share: a Redis-protocol server, and this node's place among those who use it.
 *
 * The one thing to know: a node counts only while it is attached. It attaches with what it really has, shows life each second,
 * and attaches anew when the store has dropped it, was lost, or came back without its data.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { StoreInvalid } from "./StoreError.ts"
import type { StoreOptions, StoreShape } from "./StoreShape.ts"

export type { HoldingCounts, Holdings, StoreOptions, StoreShape, StoreStatus } from "./StoreShape.ts"

export class Store extends Context.Service<Store, StoreShape>()("model-gateway/store/Store") {
  /** A server that speaks the Redis protocol, 7.0 or later. Waits 30 s for it; fails saying why this node cannot use it. */
  static readonly layerRedis = (options: StoreOptions): Layer.Layer<Store, StoreInvalid> =>
    Layer.effect(
      Store,
      Effect.flatMap(Effect.promise(() => import("./makeStore.ts")), (made) => made.makeStore(options))
    )
}
