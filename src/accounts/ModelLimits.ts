/**
 * Models that the server of an upstream without accounts limits at present (429).
 *
 * Such an upstream has no account that could cool down instead, and servers limit each model by itself: requests for its other models go
 * on. A process learns of a limit by its own requests.
 */
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { Driver } from "../upstream/Upstream.ts"
import { suspensionFor } from "./backOff.ts"
import type { TargetModel } from "./quota.ts"

/** Bounds the models that are remembered. The one that was limited first is forgotten. */
const mostModels = 1_000

/** The limit of a model. It is one of the server that `driver` calls. */
interface Limit {
  readonly driver: Driver
  until: number
  /** Limits in a row, without an answer in between. */
  count: number
}

const keyOf = ({ model, upstream }: TargetModel) => `${upstream}/${model}`

/** The limits that one process knows. */
export class ModelLimits {
  readonly #limits = new Map<string, Limit>()
  readonly #now: () => number
  readonly #driverOf: (upstream: string) => Driver | undefined

  /** `now` is the monotonic clock's milliseconds. `driverOf` returns the driver of an upstream in effect, with which its limits end. */
  constructor(now: () => number, driverOf: (upstream: string) => Driver | undefined) {
    this.#now = now
    this.#driverOf = driverOf
  }

  /** Milliseconds until the server takes requests for a model again; 0 for a model without a limit. */
  waitFor(target: TargetModel): number {
    const limit = this.#limits.size === 0 ? undefined : this.#limits.get(keyOf(target))
    return limit === undefined || limit.driver !== this.#driverOf(target.upstream)
      ? 0
      : Math.max(0, limit.until - this.#now())
  }

  /** Notes that the server limits a model. `retryAfter` is in seconds. */
  limited(target: TargetModel, driver: Driver, retryAfter: number | undefined): Effect.Effect<void> {
    return Effect.flatMap(Random.next, (random) => {
      const limits = this.#limits
      const key = keyOf(target)
      const known = limits.get(key)
      const limit = known?.driver === driver ? known : { driver, until: 0, count: 0 }
      const now = this.#now()
      const isNew = limit.until <= now
      // Requests that fail together are one limit, which a later answer can lengthen.
      if (isNew) limit.count++
      else if (retryAfter === undefined) return Effect.void
      const { delay } = suspensionFor("rate_limited", limit.count, retryAfter, random)
      limit.until = Math.max(limit.until, now + delay)
      limits.delete(key)
      limits.set(key, limit)
      const [oldest] = limits.keys()
      if (limits.size > mostModels) limits.delete(oldest!)
      return isNew
        ? Effect.annotateLogs(Effect.logDebug("A model is limited by its upstream"), {
          upstream: target.upstream,
          model: target.model,
          seconds: delay / 1_000
        })
        : Effect.void
    })
  }

  /** Notes that the server has answered for a model. */
  answered(target: TargetModel): void {
    const limit = this.#limits.size === 0 ? undefined : this.#limits.get(keyOf(target))
    // A request that began before the limit says nothing about it.
    if (limit !== undefined && limit.until <= this.#now()) this.#limits.delete(keyOf(target))
  }
}
