/**
 * Decodes `prices` and `currency`. There may be thousands of prices, so decoding yields to other fibers, and an unchanged group is
 * decoded once.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { parseDecimal } from "../domain/decimal.ts"
import { normalizeModelName } from "../domain/models.ts"
import { makePriceTable, noPrices, type Price, type PriceTable } from "../domain/prices.ts"
import { type Fault, fault, faultsOf } from "./ConfigError.ts"
import type { UpstreamConfig } from "./GatewayConfig.ts"
import { forEachCooperatively, isJsonObject } from "./json.ts"
import { Currency, mostPrices, PriceEntry } from "./schema.ts"

const decodeEntry = Schema.decodeUnknownResult(PriceEntry)
const decodeCode = Schema.decodeUnknownResult(Currency)
const tables = new WeakMap<object, PriceTable>()

/** Cost of decoding a price, in characters (`forEachCooperatively`). */
const priceWeight = 2048

const toPrice = ({ cached_input, input = 0, output = 0, per_request = 0 }: typeof PriceEntry.Type): Price => {
  const read = (value: number | string) => parseDecimal(value) ?? 0n
  return {
    input: read(input),
    cachedInput: read(cached_input ?? input),
    output: read(output),
    perRequest: read(per_request)
  }
}

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
  const prices = new Map<string, Price>()
  const entries = Object.entries(raw)
  if (entries.length > mostPrices) found.push(fault("prices", `must have at most ${mostPrices} prices`))
  yield* forEachCooperatively(entries.slice(0, mostPrices), ([written, entry]) => {
    const name = normalizeModelName(written)
    const wrong = (rule: string) => found.push(fault(`prices.${written}`, rule))
    if (name === "") found.push(fault("prices", "must not have an empty name"))
    if (name.slice(0, -1).includes("*")) wrong("may have * at its end only")
    if (prices.has(name)) wrong("is named twice, but for case and blanks")
    const decoded = decodeEntry(entry, { errors: "all" })
    if (Result.isFailure(decoded)) found.push(...faultsOf(decoded.failure, ["prices", written]))
    else prices.set(name, toPrice(decoded.success))
    return priceWeight
  })
  faults.push(...found)
  const table = makePriceTable(prices)
  if (found.length === 0) tables.set(raw, table)
  return table
})

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
