/** The limits in force, for whoever handles a request. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { defaultLimits, type Limits } from "../domain/limits.ts"
import { ConfigStore } from "./ConfigStore.ts"

/** The limits now; the defaults where no configuration is at hand. */
export const CurrentLimits = Context.Reference<() => Limits>("model-gateway/config/Limits", {
  defaultValue: () => () => defaultLimits
})

/** The limits that the configuration sets, from the next request on. */
export const layerLimits: Layer.Layer<never, never, ConfigStore> = Layer.effect(
  CurrentLimits,
  Effect.map(ConfigStore, (config) => () => config.unsafeCurrent().limits)
)

/** Bytes that requests hold in memory: bodies, prompts, whole replies, clients' queues. */
export interface BufferedBytes {
  used: number
  /** Bytes of the largest reply that was refused since room was last made. */
  refused?: number
}

/** The sum over all requests of a gateway. */
export const CurrentBufferedBytes = Context.Reference<BufferedBytes>("model-gateway/config/BufferedBytes", {
  defaultValue: () => ({ used: 0 })
})

/** A sum of its own for each gateway. */
export const layerBufferedBytes: Layer.Layer<never> = Layer.sync(CurrentBufferedBytes, () => ({ used: 0 }))

/** What one request holds of the sum. */
export interface Held {
  /** Adds bytes; false where the sum is over `buffered_bytes` then. They count all the same, until the scope closes. */
  readonly add: (bytes: number) => boolean
}

/** What one request holds, until it is released. */
export class HeldBytes implements Held {
  private readonly sum: BufferedBytes
  private readonly limits: () => Limits
  private held = 0

  constructor(sum: BufferedBytes, limits: () => Limits) {
    this.sum = sum
    this.limits = limits
  }

  add(bytes: number): boolean {
    this.held += bytes
    this.sum.used += bytes
    return this.sum.used <= this.limits().buffered_bytes
  }

  /** Takes all of it off the sum. */
  release(): void {
    this.sum.used -= this.held
    this.held = 0
  }
}

/** Counts what a request holds until its scope closes. */
export const holdBytes: Effect.Effect<Held, never, Scope.Scope> = Effect.withFiber((fiber) => {
  const held = new HeldBytes(fiber.getRef(CurrentBufferedBytes), fiber.getRef(CurrentLimits))
  const scope = Context.getUnsafe(fiber.context, Scope.Scope)
  return Effect.as(Scope.addFinalizer(scope, Effect.sync(() => held.release())), held)
})
