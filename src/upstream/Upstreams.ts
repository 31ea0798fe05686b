/**
 * The drivers of all upstreams, by the names of the upstreams.
 *
 * The one thing to know: an upstream is an entry. `layer.ts` makes the entries of the configuration; an app adds its own by
 * `Upstreams.layerWith`, or has one alone by `Upstreams.layerOf`.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { UpstreamConfig } from "../config/GatewayConfig.ts"
import type { Driver } from "./Upstream.ts"

/** Drivers by the names of their upstreams. */
export type Drivers = ReadonlyMap<string, Driver>

const ownUpstreamOnly = "This gateway serves the upstream of its app alone: another one cannot be tested"

/** The name of an app's upstream that has no other name: that of the configuration's group `upstream`. */
const usualName = "default"

/** Drivers made from others, once for each set of them. */
const derived = <A>(from: Effect.Effect<A>, derive: (from: A) => Drivers): Effect.Effect<Drivers> => {
  let last: { readonly from: A; readonly drivers: Drivers } | undefined
  return Effect.map(from, (from) => {
    if (last?.from !== from) last = { from, drivers: derive(from) }
    return last.drivers
  })
}

/** The drivers of all upstreams. They follow the configuration; one try of a request uses one driver throughout. */
export class Upstreams extends Context.Service<Upstreams, {
  /** The drivers in effect; the same object until one of them changes. */
  readonly all: Effect.Effect<Drivers>
  /** Makes the driver of an upstream that need not be configured. Fails with the reason if it cannot be called. */
  readonly make: (upstream: UpstreamConfig) => Effect.Effect<Driver, string>
}>()("model-gateway/upstream/Upstreams") {
  /** An app's upstream alone. The configuration's `driver` of this name is ignored, and other upstreams have no driver. */
  static readonly layerOf = (driver: Driver | Effect.Effect<Driver>, name = usualName): Layer.Layer<Upstreams> => {
    const own = Effect.isEffect(driver) ? driver : Effect.succeed(driver)
    return Layer.succeed(Upstreams, {
      all: derived(own, (driver) => new Map([[name, driver]])),
      make: (upstream) => upstream.name === name ? own : Effect.fail(ownUpstreamOnly)
    })
  }

  /** An app's upstream beside others; it replaces one of the same name. */
  static readonly layerWith = (driver: Driver, name = usualName): Layer.Layer<Upstreams, never, Upstreams> =>
    Layer.effect(
      Upstreams,
      Effect.map(Upstreams, ({ all, make }) => ({
        all: derived(all, (drivers) => new Map([[name, driver], ...drivers, [name, driver]])),
        make: (upstream) => upstream.name === name ? Effect.succeed(driver) : make(upstream)
      }))
    )

  /** Upstreams whose drivers an app changes, each by its name. */
  static readonly layerMapped = (
    change: (driver: Driver, name: string) => Driver
  ): Layer.Layer<Upstreams, never, Upstreams> =>
    Layer.effect(
      Upstreams,
      Effect.map(Upstreams, ({ all, make }) => ({
        all: derived(all, (drivers) => new Map(Array.from(drivers, ([name, one]) => [name, change(one, name)]))),
        make: (upstream) => Effect.map(make(upstream), (driver) => change(driver, upstream.name))
      }))
    )
}
