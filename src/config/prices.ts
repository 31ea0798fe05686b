/**
 * Decodes `prices` and `currency`.
 */
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { parseDecimal } from "../domain/decimal.ts"
import { normalizeModelName } from "../domain/models.ts"
import { hasNoNames } from "../domain/nameTable.ts"
import { type DatedPrice, PricedEntry, type PriceLevel, type PriceTable, type UnitPrices } from "../domain/prices.ts"
import { pieceUnits, tokenUnits, toolUnit } from "../domain/units.ts"
import { type Fault, faultsOf } from "./ConfigError.ts"
import type { GatewayConfig, UpstreamConfig } from "./GatewayConfig.ts"
import { namedEntries } from "./namedEntries.ts"
import { Currency, DatedPrices, mostPrices, PriceEntry, priceStart } from "./schema.ts"

const decodeEntry = Schema.decodeUnknownResult(PriceEntry)
const decodeDated = Schema.decodeUnknownResult(DatedPrices)
const decodeCode = Schema.decodeUnknownResult(Currency)

type Entry = typeof PriceEntry.Type
type Level = Pick<Entry, "above"> & Omit<Entry, "from" | "tiers" | "factors">

const amountOf = (value: number | string): bigint => parseDecimal(value) ?? 0n

const unitsOf = (level: Omit<Level, "above">): UnitPrices => {
  const units = new Map<string, bigint>()
  for (const unit of [...tokenUnits, ...pieceUnits]) {
    const value = level[unit]
    if (value !== undefined) units.set(unit, amountOf(value))
  }
  for (const [tool, value] of Object.entries(level[toolUnit] ?? {})) units.set(`${toolUnit}.${tool}`, amountOf(value))
  return units
}

const levelOf = (level: Level): PriceLevel => ({
  units: unitsOf(level),
  above: (level.above ?? []).map((step) => ({ tokens: step.tokens, units: unitsOf(step) }))
    .sort((a, b) => b.tokens - a.tokens)
})

const toPrice = (entry: Entry): DatedPrice => ({
  from: entry.from === undefined ? undefined : priceStart(entry.from),
  price: {
    ...levelOf(entry),
    tiers: new Map(Object.entries(entry.tiers ?? {}).map(([tier, level]) => [tier.toLowerCase(), levelOf(level)])),
    factors: new Map(
      Object.entries(entry.factors ?? {}).map(([field, values]) => [
        field,
        new Map(Object.entries(values).map(([value, factor]) => [value, amountOf(factor)]))
      ])
    )
  }
})

/** Decodes a price, or a list of dated ones. */
const decodeOne = (entry: Schema.Json): Result.Result<ReadonlyArray<Entry>, Schema.SchemaError> =>
  Array.isArray(entry)
    ? decodeDated(entry, { errors: "all" })
    : Result.map(decodeEntry(entry, { errors: "all" }), (one) => [one])

/** Decodes `prices`; adds what is wrong to `faults`. */
export const decodePrices = namedEntries({
  group: "prices",
  most: mostPrices,
  decode: (entry) => Result.map(decodeOne(entry), (entries) => new PricedEntry(() => entries.map(toPrice)))
})

/** The configured prices, and what decides between them and a server's own cost, at a time in Unix milliseconds. */
export interface Pricing extends Pick<GatewayConfig, "prices" | "currency"> {
  readonly upstreams: ReadonlyMap<string, Pick<UpstreamConfig, "bill">>
  readonly now: number
}

/** The prices with the servers' own names of the models whose ids differ from them. */
export const withServedNames = (
  prices: PriceTable,
  upstreams: ReadonlyMap<string, Pick<UpstreamConfig, "models">>
): PriceTable => {
  if (hasNoNames(prices)) return prices
  const served = new Map<string, string>()
  for (const [name, { models }] of upstreams) {
    for (const { id, model } of models) {
      const [own, other] = [normalizeModelName(id), normalizeModelName(model)]
      if (own !== other) served.set(`${name}/${own}`, other)
    }
  }
  return served.size === 0 ? prices : { ...prices, served }
}

/** Decodes `currency`; adds what is wrong to `faults`. */
export const decodeCurrency = (raw: Schema.Json | undefined, faults: Array<Fault>): string | undefined => {
  if (raw === undefined) return undefined
  const decoded = decodeCode(raw)
  if (Result.isSuccess(decoded)) return decoded.success.toUpperCase()
  faults.push(...faultsOf(decoded.failure, ["currency"]))
  return undefined
}
