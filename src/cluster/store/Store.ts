/**
 * The store that nodes share: a Redis-protocol server, and this node's membership.
 *
 * A node is a member only while it is attached. It attaches with its actual leases and waiters, sends a heartbeat each
 * second, and attaches again when the store has dropped it, was lost, or came back without its data.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { StoreInvalid, StoreOptions, StoreShape } from "./StoreShape.ts"

export type { HoldingCounts, Holdings, StoreOptions, StoreShape, StoreStatus } from "./StoreShape.ts"

export class Store extends Context.Service<Store, StoreShape>()("model-gateway/store/Store") {
  /**
   * A server with the Redis protocol, 7.0 or later. Waits 30 s for it; fails with the reason why this node cannot use it.
   */
  static readonly layerRedis = (options: StoreOptions): Layer.Layer<Store, StoreInvalid> =>
    Layer.effect(
      Store,
      Effect.flatMap(Effect.promise(() => import("./makeStore.ts")), (made) => made.makeStore(options))
    )
}
