/**
 * Imports prices from a file of the common community form, `model_prices_and_context_window.json`: an object of models, whose
 * prices are per token.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { formatDecimal, roundDecimal } from "../domain/decimal.ts"
import { normalizeModelName } from "../domain/models.ts"
import type { ConfigFile } from "./ConfigFile.ts"
import { decodeConfig } from "./decodeConfig.ts"
import { forEachCooperatively, isJsonObject, parseConfig, type RawConfig, stringifyConfig } from "./json.ts"

/** The fields of the form, with those of `prices`. */
const fields = [
  ["input_cost_per_token", "input"],
  ["cache_read_input_token_cost", "cached_input"],
  ["output_cost_per_token", "output"]
] as const

/** The entry that documents the form. */
const example = "sample_spec"

/** Prices of a file. */
interface ReadPrices {
  /** Entries of `prices`. */
  readonly prices: RawConfig
  readonly taken: number
  /** The number of entries without a price for a token. */
  readonly unpriced: number
}

/** Decimal digits are a number in the file if the number is written in the same way. */
const written = (text: string): string | number => String(Number(text)) === text ? Number(text) : text

/** The price of an entry for a million tokens, to 9 decimals. */
const priceOf = (entry: RawConfig): Record<string, string | number> | undefined => {
  const price: Record<string, string | number> = {}
  for (const [name, field] of fields) {
    const value = entry[name]
    const amount = typeof value === "number" || typeof value === "string" ? roundDecimal(value, 6) : undefined
    if (amount !== undefined) price[field] = written(formatDecimal(amount))
  }
  return price["input"] === undefined && price["output"] === undefined ? undefined : price
}

/** Reads the prices of a file; of names that are equal but for case and blanks the last one counts. */
export const readPrices = Effect.fnUntraced(function*(file: RawConfig): Effect.fn.Return<ReadPrices> {
  const found = new Map<string, readonly [name: string, price: RawConfig]>()
  let unpriced = 0
  yield* forEachCooperatively(Object.entries(file), ([name, entry]) => {
    if (name === example) return
    const price = isJsonObject(entry) ? priceOf(entry) : undefined
    const normal = normalizeModelName(name)
    // A `*` within a name stands for places and contracts, which no request names.
    if (price === undefined || normal === "" || normal.slice(0, -1).includes("*")) unpriced++
    else found.set(normal, [name, price])
  })
  return { prices: Object.fromEntries(found.values()), taken: found.size, unpriced }
})

/** Adds prices to those of a configuration, in place of prices of the same name. */
const withPrices = (raw: RawConfig, prices: RawConfig): RawConfig => {
  const before = isJsonObject(raw["prices"]) ? raw["prices"] : {}
  const names = new Set(Object.keys(prices).map(normalizeModelName))
  const kept = Object.entries(before).filter(([name]) => !names.has(normalizeModelName(name)))
  return { ...raw, prices: { ...Object.fromEntries(kept), ...prices } }
}

/** Writes prices into a configuration file, which is made if it is missing. Nothing else in it changes. */
export const savePrices = (file: ConfigFile, prices: RawConfig) =>
  file.exclusively(Effect.gen(function*() {
    const content = yield* file.read
    const raw = Option.isNone(content) ? {} : yield* parseConfig(file.path, content.value.text)
    const next = withPrices(raw, prices)
    yield* decodeConfig(next, { source: file.path, duplicates: "keep-first" })
    yield* file.replace(yield* stringifyConfig(next, "indented"))
  }))
