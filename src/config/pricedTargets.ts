/**
 * The prices of all targets: which entry counts for each, and what it lacks.
 */
import { chargedUnits } from "../contracts/drivers.ts"
import { normalizeModelName } from "../domain/models.ts"
import { findPrice, type Price, servedName, type UnitPrices } from "../domain/prices.ts"
import { reachesModel, serverModels } from "../domain/routeLists.ts"
import { plainTarget, type Target, targetName } from "../domain/routes.ts"
import { formatTimestamp } from "../domain/time.ts"
import type { TokenUnit } from "../domain/units.ts"
import type { GatewayConfig } from "./GatewayConfig.ts"
import { isJsonObject, type RawConfig } from "./json.ts"

/** A target under a name, with its price. */
export interface PricedTarget {
  /** `upstream/model`. */
  readonly target: string
  readonly upstream: string
  /** The id within the upstream. */
  readonly model: string
  readonly server_model: string
  /** The gateway's name: that of a route, or the model's id. */
  readonly name: string
  /** The name of the entry that counts, as it is written; `list price of DATE` for one of the vendors' list. */
  readonly price: string | null
  /** When the price has begun. */
  readonly from: string | null
  /** The day of the vendors' list that has the price. */
  readonly listed: string | null
  readonly missing: ReadonlyArray<TokenUnit>
}

/** Views a target under a name, with its price at a time in Unix milliseconds. */
export const priceViewer = (
  raw: RawConfig,
  { prices, upstreams }: GatewayConfig,
  now: number
) => {
  const written = new Map(
    Object.keys(isJsonObject(raw["prices"]) ? raw["prices"] : {}).map((name) => [normalizeModelName(name), name])
  )
  return (target: Target, name: string): PricedTarget & { readonly units: UnitPrices | undefined } => {
    const { model: { id: model }, upstream } = target
    const found = findPrice(prices, now, upstream, model, name)
    const served = servedName(prices, upstream, model)
    return {
      target: targetName(target),
      upstream,
      model,
      server_model: served === normalizeModelName(model) ? model : served,
      name,
      price: found === undefined ? null : written.get(found.entry) ?? found.entry,
      from: found?.from === undefined ? null : formatTimestamp(found.from),
      listed: found?.price.listed ?? null,
      missing: chargedUnits(upstreams.get(upstream)?.driver ?? "").filter((unit) =>
        found?.price.units.has(unit) !== true
      ),
      units: found?.price.units
    }
  }
}

const pricesText = ({ above, factors, tiers, units }: Price): string =>
  JSON.stringify(
    [units, above.map((step) => [step.tokens, [...step.units]]), tiers, factors],
    (_, value: unknown) => value instanceof Map ? [...value] : typeof value === "bigint" ? String(value) : value
  )

/**
 * The entry that names what a target's server calls the model, where an entry by another name counts in its place with other prices at a time
 * in Unix milliseconds; `undefined` without one. An entry by `upstream/model` is meant.
 */
export const beatenPrice = (
  { prices }: Pick<GatewayConfig, "prices">,
  { model, name, server_model, upstream }: PricedTarget,
  now: number
): string | undefined => {
  const own = normalizeModelName(server_model)
  const found = findPrice(prices, now, upstream, model, name)
  const meant = [`${upstream}/${normalizeModelName(model)}`, `${upstream}/${own}`, own]
  if (found === undefined || found.entry.endsWith("*") || meant.includes(found.entry)) return undefined
  const text = pricesText(found.price)
  return meant.slice(1).find((entry) => {
    const price = prices.exact.get(entry)?.at(now)?.price
    return price !== undefined && pricesText(price) !== text
  })
}

/**
 * Each target under its own name and under those of the routes to it, with its price at a time in Unix milliseconds. Costs one pass over
 * targets and prices.
 */
export const pricedTargets = (
  raw: RawConfig,
  config: GatewayConfig,
  now: number
): ReadonlyArray<PricedTarget> => {
  const { route_table } = config
  const viewed = priceViewer(raw, config, now)
  const view = (target: Target, name: string): PricedTarget => {
    const { units: _, ...priced } = viewed(target, name)
    return priced
  }
  const listed = Array.from(route_table.upstreams.values()).flatMap((targets) =>
    Array.from(targets.values()).flatMap((target) =>
      reachesModel(route_table, { targets: [target] }) ? [view(target, target.model.id)] : []
    )
  )
  const ofServer = serverModels(route_table).map((model) =>
    view({ ...plainTarget, upstream: route_table.config.unnamed, model, enabled: true }, model.id)
  )
  const routed = Array.from(route_table.routes.values()).flatMap(({ id, kind, targets }) =>
    kind !== "configured"
      ? []
      : targets.flatMap((target) =>
        normalizeModelName(target.model.id) === normalizeModelName(id) ? [] : [view(target, id)]
      )
  )
  return [...listed, ...ofServer, ...routed]
}
