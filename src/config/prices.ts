/**
 * Decodes `prices` and `currency`.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { isServer } from "../contracts/drivers.ts"
import { isGlobal } from "../contracts/names.ts"
import { parseDecimal } from "../domain/decimal.ts"
import { normalizeModelName } from "../domain/models.ts"
import { hasNoNames, makeNameTable, type NameTable, noNames } from "../domain/nameTable.ts"
import { type DatedPrice, PricedEntry, type PriceLevel, type PriceTable, type UnitPrices } from "../domain/prices.ts"
import { pieceUnits, tokenUnits, toolUnit } from "../domain/units.ts"
import { type Fault, fault, faultsOf } from "./ConfigError.ts"
import type { GatewayConfig, UpstreamConfig } from "./GatewayConfig.ts"
import { isJsonObject } from "./json.ts"
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

const toPrice = (entry: Entry, listed: string | undefined): DatedPrice => ({
  from: entry.from === undefined ? undefined : priceStart(entry.from),
  price: {
    listed,
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

/** The field of `prices` that switches the list off. An object under this name is the price of a model. */
export const listSwitch = "list"

const isSwitch = (name: string, entry: Schema.Json): boolean => name === listSwitch && typeof entry !== "object"

/** Decodes `prices`; adds what is wrong to `faults`. */
export const decodePrices = namedEntries({
  group: "prices",
  most: mostPrices,
  isSetting: isSwitch,
  decode: (entry) =>
    Result.map(
      decodeOne(entry),
      (entries) => new PricedEntry(() => entries.map((each) => toPrice(each, undefined)))
    )
})

/** The prices of a list by the vendors' names of models. Each is decoded at its first use. */
const readList = Effect.map(
  Effect.promise(() => import("./listPrices.ts")),
  ({ listedOn, listPrices }) =>
    makeNameTable(
      Object.entries(listPrices).map(([name, entry]) => [
        name,
        new PricedEntry(() => [toPrice(Schema.decodeUnknownSync(PriceEntry)(entry), listedOn)])
      ])
    )
)

let list: NameTable<PricedEntry> | undefined

/** The vendors' list prices, which are in US dollars; empty in another currency, and if `prices.list` is false. */
export const decodeListPrices = Effect.fnUntraced(function*(
  raw: Schema.Json | undefined,
  currency: string | undefined,
  faults: Array<Fault>
): Effect.fn.Return<NameTable<PricedEntry>> {
  const wanted = isJsonObject(raw) ? raw[listSwitch] : undefined
  const isGiven = wanted !== undefined && isSwitch(listSwitch, wanted)
  if (isGiven && typeof wanted !== "boolean") faults.push(fault(`prices.${listSwitch}`, "must be true or false"))
  return (isGiven && wanted !== true) || (currency ?? "USD") !== "USD" ? noNames : list ??= yield* readList
})

/** The configured prices, and what decides between them and a server's own cost, at a time in Unix milliseconds. */
export interface Pricing extends Pick<GatewayConfig, "prices" | "currency"> {
  readonly upstreams: ReadonlyMap<string, Pick<UpstreamConfig, "bill">>
  readonly now: number
}

/** The prices with the servers' own names of the models whose ids differ from them, and with list prices. */
export const withServedNames = (
  prices: PriceTable,
  list: NameTable<PricedEntry>,
  upstreams: ReadonlyMap<string, Pick<UpstreamConfig, "driver" | "models" | "server">>
): PriceTable => {
  if (hasNoNames(prices) && hasNoNames(list)) return prices
  const names = new Map<string, string>()
  for (const [name, { models }] of upstreams) {
    for (const { id, model } of models) {
      const [own, other] = [normalizeModelName(id), normalizeModelName(model)]
      if (own !== other) names.set(`${name}/${own}`, other)
    }
  }
  const isListed = (upstream: string, model: string): boolean => {
    const { driver = "", server } = upstreams.get(upstream) ?? {}
    return isServer(driver) && (server === undefined || isGlobal(server.vendor, server.place, model))
  }
  return { ...prices, served: { names, list, isListed } }
}

/** Decodes `currency`; adds what is wrong to `faults`. */
export const decodeCurrency = (raw: Schema.Json | undefined, faults: Array<Fault>): string | undefined => {
  if (raw === undefined) return undefined
  const decoded = decodeCode(raw)
  if (Result.isSuccess(decoded)) return decoded.success.toUpperCase()
  faults.push(...faultsOf(decoded.failure, ["currency"]))
  return undefined
}
