/**
 * Models that the server of an upstream without accounts limits at present (429).
 *
 * Such an upstream has no account that could cool down instead, and servers limit each model by itself: requests for its other models go
 * on. A process learns of a limit by its own requests.
 */
import type { Clock } from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { Shutdown } from "../config/clock/Shutdown.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { monotonicMillis } from "../domain/time.ts"
import type { Driver } from "../upstream/Upstream.ts"
import { suspensionFor } from "./backOff.ts"
import type { LeaseTarget, ModelLimits } from "./Lease.ts"
import { shuttingDown } from "./refusals.ts"

/** Bounds the models that are remembered. The one that was limited first is forgotten. */
const mostModels = 1_000

/** The limit of a model. It is one of the server that `driver` calls. */
interface Limit {
  readonly driver: Driver
  until: number
  /** Limits in a row, without an answer in between. */
  count: number
}

const limitedUntil = (millis: number): GatewayError =>
  gatewayError("upstream_rate_limited", "The upstream limits the rate of requests for the model", {
    retryAfter: Math.max(1, Math.ceil(millis / 1_000))
  })

/** Makes the limits of one process. `driverOf` returns the driver of an upstream in effect, with which its limits end. */
export const makeModelLimits = (
  clock: Clock,
  shutdown: Shutdown,
  driverOf: (upstream: string) => Driver | undefined
): ModelLimits => {
  const limits = new Map<string, Limit>()
  let waiting = 0
  const now = () => monotonicMillis(clock)
  const keyOf = ({ model, upstream }: LeaseTarget) => `${upstream}/${model}`

  return {
    isActive: () => limits.size > 0,
    waitFor: (target) => {
      const limit = limits.get(keyOf(target))
      return limit === undefined || limit.driver !== driverOf(target.upstream) ? 0 : Math.max(0, limit.until - now())
    },
    limited: (target, driver, retryAfter) =>
      Effect.flatMap(Random.next, (random) => {
        const key = keyOf(target)
        const known = limits.get(key)
        const limit = known?.driver === driver ? known : { driver, until: 0, count: 0 }
        const isNew = limit.until <= now()
        // Requests that fail together are one limit, which a later answer can lengthen.
        if (isNew) limit.count++
        else if (retryAfter === undefined) return Effect.void
        const { delay } = suspensionFor("rate_limited", limit.count, retryAfter, random)
        limit.until = Math.max(limit.until, now() + delay)
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
      }),
    answered: (target) => {
      const key = keyOf(target)
      const limit = limits.get(key)
      // A request that began before the limit says nothing about it.
      if (limit !== undefined && limit.until <= now()) limits.delete(key)
    },
    pass: (millis, patience, most) =>
      Effect.suspend(() => {
        if (millis > patience || waiting >= most) return Effect.fail(limitedUntil(millis))
        waiting++
        const closing = Deferred.makeUnsafe<never, GatewayError>()
        const close = () => Deferred.doneUnsafe(closing, Effect.fail(shuttingDown))
        const unwatch = shutdown.watch(close)
        if (shutdown.isOver) close()
        return Effect.timeoutOrElse(Deferred.await(closing), { duration: millis, orElse: () => Effect.void }).pipe(
          Effect.ensuring(Effect.sync(() => {
            waiting--
            unwatch()
          }))
        )
      })
  }
}
