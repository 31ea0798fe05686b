/**
 * Decodes `prices` and `currency`. There may be thousands of prices, so decoding yields to other fibers, and an unchanged group is
 * decoded once.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { parseDecimal } from "../domain/decimal.ts"
import { normalizeModelName } from "../domain/models.ts"
import {
  type DatedPrice,
  makePriceTable,
  noPrices,
  PricedEntry,
  type PriceLevel,
  type PriceTable,
  type UnitPrices
} from "../domain/prices.ts"
import { pieceUnits, tokenUnits, toolUnit } from "../domain/units.ts"
import { type Fault, fault, faultsOf } from "./ConfigError.ts"
import type { GatewayConfig, UpstreamConfig } from "./GatewayConfig.ts"
import { forEachCooperatively, isJsonObject } from "./json.ts"
import { Currency, DatedPrices, mostPrices, PriceEntry, priceStart } from "./schema.ts"

const decodeEntry = Schema.decodeUnknownResult(PriceEntry)
const decodeDated = Schema.decodeUnknownResult(DatedPrices)
const decodeCode = Schema.decodeUnknownResult(Currency)
const tables = new WeakMap<object, PriceTable>()

/** Cost of decoding a price, in characters (`forEachCooperatively`). */
const priceWeight = 2048

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
export const decodePrices = Effect.fnUntraced(function*(
  raw: Schema.Json | undefined,
  faults: Array<Fault>
): Effect.fn.Return<PriceTable> {
  if (raw === undefined) return noPrices
  if (!isJsonObject(raw)) {
    faults.push(fault("prices", "must be an object"))
    return noPrices
  }
  const known = tables.get(raw)
  if (known !== undefined) return known
  const found: Array<Fault> = []
  const prices = new Map<string, PricedEntry>()
  const entries = Object.entries(raw)
  if (entries.length > mostPrices) found.push(fault("prices", `must have at most ${mostPrices} prices`))
  yield* forEachCooperatively(entries.slice(0, mostPrices), ([written, entry]) => {
    const name = normalizeModelName(written)
    const wrong = (rule: string) => found.push(fault(`prices.${written}`, rule))
    if (name === "") found.push(fault("prices", "must not have an empty name"))
    if (name.slice(0, -1).includes("*")) wrong("may have * at its end only")
    if (prices.has(name)) wrong("is named twice, but for case and blanks")
    const decoded = decodeOne(entry)
    if (Result.isFailure(decoded)) found.push(...faultsOf(decoded.failure, ["prices", written]))
    else {
      const entries = decoded.success
      prices.set(name, new PricedEntry(() => entries.map(toPrice)))
    }
    return priceWeight
  })
  faults.push(...found)
  const table = makePriceTable(prices)
  if (found.length === 0) tables.set(raw, table)
  return table
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
  if (prices === noPrices) return prices
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
