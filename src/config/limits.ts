/** The limits in effect, and the sum of held bytes, for request handlers. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { defaultLimits, type Limits } from "../domain/limits.ts"

/** The current limits; the defaults without a configuration. */
export const CurrentLimits = Context.Reference<() => Limits>("model-gateway/config/Limits", {
  defaultValue: () => () => defaultLimits
})

/** The sum of bytes that requests hold in memory: bodies, prompts, whole replies, response buffers. */
export interface BufferedBytes {
  used: number
  /** Size of the largest reply that was rejected since the last sweep of connections. */
  refused?: number
}

/** The sum of the current gateway. */
export const CurrentBufferedBytes = Context.Reference<BufferedBytes>("model-gateway/config/BufferedBytes", {
  defaultValue: () => ({ used: 0 })
})

/** A separate sum for each gateway. */
export const layerBufferedBytes: Layer.Layer<never> = Layer.sync(CurrentBufferedBytes, () => ({ used: 0 }))

/** A request's part of the sum. */
export interface Held {
  /**
   * Adds bytes. Returns false if the sum then exceeds `buffered_bytes`. The bytes count in any case, until the scope
   * closes.
   */
  readonly add: (bytes: number) => boolean
}

export class HeldBytes implements Held {
  private readonly sum: BufferedBytes
  private readonly limits: () => Limits
  private held = 0
  /** The reply comes from the upstream: its bytes count as they arrive. */
  countsReply = false

  constructor(sum: BufferedBytes, limits: () => Limits) {
    this.sum = sum
    this.limits = limits
  }

  add(bytes: number): boolean {
    this.held += bytes
    this.sum.used += bytes
    return this.sum.used <= this.limits().buffered_bytes
  }

  /** Subtracts all bytes of the request from the sum. */
  release(): void {
    this.sum.used -= this.held
    this.held = 0
  }
}

/** A request's part of the sum, released when its scope closes. */
export const holdBytes: Effect.Effect<Held, never, Scope.Scope> = Effect.withFiber((fiber) => {
  const held = new HeldBytes(fiber.getRef(CurrentBufferedBytes), fiber.getRef(CurrentLimits))
  const scope = Context.getUnsafe(fiber.context, Scope.Scope)
  return Effect.as(Scope.addFinalizer(scope, Effect.sync(() => held.release())), held)
})
