/**
 * The drivers of the upstreams that the configuration names, beside the `Upstream` that an embedder hands in or the group `upstream`
 * describes. That one goes by the name `default`.
 */
import * as Context from "effect/Context"
import type { NamedUpstream } from "../config/GatewayConfig.ts"
import type { Driver } from "./Upstream.ts"

/** Drivers by the names of their upstreams. */
export type Drivers = ReadonlyMap<string, Driver>

/** The drivers of named upstreams. */
export interface NamedDrivers {
  /** The drivers of the current configuration, without `default`; the same object until that changes. */
  readonly now: () => Drivers
  /** Makes the driver of an upstream that need not be configured. */
  readonly make: (upstream: NamedUpstream) => Driver
}

/** The drivers of named upstreams. Without `configuredUpstream` or `namedUpstreams`, a gateway serves no named ones. */
export const Upstreams = Context.Reference<NamedDrivers | undefined>("model-gateway/upstream/Upstreams", {
  defaultValue: () => undefined
})

const noDrivers: Drivers = new Map()

/** Joins the driver of `default` with the named ones. Returns the same object while neither has changed. */
export const joinDrivers = (named: NamedDrivers | undefined, nameOfDefault: string): (driver: Driver) => Drivers => {
  let ofDefault: Driver | undefined
  let others: Drivers | undefined
  let joined: Drivers = noDrivers
  return (driver) => {
    const now = named?.now() ?? noDrivers
    if (driver !== ofDefault || now !== others) {
      ofDefault = driver
      others = now
      joined = new Map([[nameOfDefault, driver], ...now])
    }
    return joined
  }
}
