/**
 * Imports prices from a file of the common community form, `model_prices_and_context_window.json`: an object of models, whose prices are
 * per token or per piece. The form is documented at https://docs.litellm.ai/docs/provider_registration/add_model_pricing.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import { formatDecimal, parseDecimal, roundDecimal } from "../domain/decimal.ts"
import { normalizeModelName } from "../domain/models.ts"
import { pieceUnits, tokenUnits, toolUnit } from "../domain/units.ts"
import type { ConfigFile } from "./ConfigFile.ts"
import { decodeConfig } from "./decodeConfig.ts"
import { forEachCooperatively, isJsonObject, parseConfig, type RawConfig, stringifyConfig } from "./json.ts"
import { priceStart } from "./schema.ts"

/** Fields of the form with the unit of each, and the power of ten from its price to ours. A later field counts if an earlier one is absent or 0. */
const unitFields: ReadonlyMap<string, readonly [unit: string, exponent: number]> = new Map([
  ["input_cost_per_token", ["input", 6]],
  ["output_cost_per_token", ["output", 6]],
  ["cache_read_input_token_cost", ["cached_input", 6]],
  ["input_cost_per_token_cache_hit", ["cached_input", 6]],
  ["cache_creation_input_token_cost", ["cache_write", 6]],
  ["cache_creation_input_token_cost_above_1hr", ["cache_write_1h", 6]],
  ["output_cost_per_reasoning_token", ["reasoning", 6]],
  ["input_cost_per_audio_token", ["audio_input", 6]],
  ["cache_read_input_audio_token_cost", ["audio_cached_input", 6]],
  ["output_cost_per_audio_token", ["audio_output", 6]],
  ["input_cost_per_image_token", ["image_input", 6]],
  ["output_cost_per_image_token", ["image_output", 6]],
  ["input_cost_per_request", ["per_request", 0]],
  ["output_cost_per_image", ["per_image", 0]],
  ["input_cost_per_image", ["per_input_image", 0]],
  ["input_cost_per_second", ["per_second", 0]],
  ["output_cost_per_second", ["per_second", 0]],
  ["input_cost_per_character", ["per_character", 0]],
  ["output_cost_per_character", ["per_character", 0]],
  ["input_cost_per_query", ["per_query", 0]],
  ["ocr_cost_per_page", ["per_page", 0]],
  ["file_search_cost_per_1k_calls", [`${toolUnit}.file_search`, -3]],
  ["code_interpreter_cost_per_session", [`${toolUnit}.code_interpreter`, 0]],
  ["google_maps_grounding_cost_per_query", [`${toolUnit}.google_maps`, 0]]
])

/** The service tiers by their endings. */
const tiers: ReadonlyMap<string, string> = new Map([["priority", "priority"], ["flex", "flex"], ["batches", "batch"]])

const form = /^(.+?)(?:_above_(\d{1,7})k_tokens)?(?:_(priority|flex|batches))?$/

/** Fields with prices by their names, whether they have a place or not. */
const isPriceName = (name: string): boolean => /cost|pric|multiplier/.test(name) && !name.startsWith("supports_")

/** The entry that documents the form. */
const example = "sample_spec"

type Amount = string | number

/** Decimal digits are a number in the file if the number is written in the same way. */
const written = (amount: bigint): Amount => {
  const text = formatDecimal(amount)
  return String(Number(text)) === text ? Number(text) : text
}

const amountOf = (value: unknown, exponent: number): bigint | undefined =>
  typeof value === "number" || typeof value === "string" ? roundDecimal(value, exponent) : undefined

/** A value that says nothing: no number, or 0. */
const isNothing = (value: Schema.Json | undefined): boolean =>
  value === null || value === undefined || typeof value === "boolean" || value === "" || Number(value) === 0

/** Prices by unit; the calls of tools have `per_tool_call.` before them. */
type Units = Map<string, bigint>

interface Level {
  readonly units: Units
  readonly above: Map<number, Units>
}

const newLevel = (): Level => ({ units: new Map(), above: new Map() })

/** Makes an entry of `prices`. Collects the fields that have no place. */
class EntryReader {
  readonly #base = newLevel()
  readonly #tiers = new Map<string, Level>()
  readonly #factors = new Map<string, Map<string, bigint>>()
  readonly #placeless: Set<string>

  constructor(entry: RawConfig, placeless: Set<string>) {
    this.#placeless = placeless
    for (const name of unitFields.keys()) this.#field(name, entry)
    for (const name of Object.keys(entry)) if (!unitFields.has(name)) this.#other(name, entry)
  }

  /** The entry in the form of the configuration; `undefined` without a price. */
  entry(): RawConfig | undefined {
    const tiers = [...this.#tiers].map(([tier, level]) => [tier, levelOf(level)] as const)
    const level = levelOf(this.#base)
    if (Object.keys(level).length === 0 && tiers.length === 0) return undefined
    const factors = [...this.#factors].map(([field, values]) => [field, amountsOf(values)] as const)
    return {
      ...level,
      ...tiers.length === 0 ? {} : { tiers: Object.fromEntries(tiers) },
      ...factors.length === 0 ? {} : { factors: Object.fromEntries(factors) }
    }
  }

  #field(name: string, entry: RawConfig): boolean {
    const [, stem = "", thousands, ending] = form.exec(name) ?? []
    const [unit, exponent] = unitFields.get(name) ?? unitFields.get(stem) ?? []
    if (unit === undefined || exponent === undefined) return false
    const amount = amountOf(entry[name], exponent)
    if (amount === undefined) return true
    const isWhole = unitFields.has(name)
    this.#set(this.#unitsAt(isWhole ? undefined : thousands, isWhole ? undefined : ending), unit, amount)
    return true
  }

  #unitsAt(thousands: string | undefined, ending: string | undefined): Units {
    const tier = ending === undefined ? undefined : tiers.get(ending)
    let level = this.#base
    if (tier !== undefined) {
      level = this.#tiers.get(tier) ?? newLevel()
      this.#tiers.set(tier, level)
    }
    return thousands === undefined ? level.units : this.#step(level, Number(thousands) * 1_000)
  }

  #step({ above }: Level, tokens: number): Units {
    const units = above.get(tokens) ?? new Map<string, bigint>()
    above.set(tokens, units)
    return units
  }

  /** The first amount above 0 of a unit counts. */
  #set(units: Units, unit: string, amount: bigint): void {
    const before = units.get(unit)
    if (before === undefined || before === 0n) units.set(unit, amount)
  }

  #other(name: string, entry: RawConfig): void {
    const value = entry[name]
    if (name === "provider_specific_entry") return this.#vendors(value)
    if (!isPriceName(name) || this.#field(name, entry)) return
    const region = /^regional_processing_uplift_multiplier_([a-z]+)$/.exec(name)?.[1]
    const isPlaced = region !== undefined
      ? this.#factor("inference_geo", region, value)
      : name === "search_context_cost_per_query"
      ? this.#search(value, entry["litellm_provider"])
      : name === "tiered_pricing" && this.#ranges(value)
    if (!isPlaced && !isNothing(value)) this.#placeless.add(name)
  }

  #factor(field: string, word: string, value: Schema.Json | undefined): boolean {
    const factor = amountOf(value, 0)
    if (factor === undefined) return false
    const values = this.#factors.get(field) ?? new Map<string, bigint>()
    this.#factors.set(field, values.set(word, factor))
    return true
  }

  /** The vendor's own factors: `fast`, and those of regions. Its other fields are no prices. */
  #vendors(value: Schema.Json | undefined): void {
    if (!isJsonObject(value)) return
    this.#factor("speed", "fast", value["fast"])
    for (const region of ["us", "eu"]) this.#factor("inference_geo", region, value[region])
  }

  /** The price of a search with a context of medium size. The vendor of `generate` calls its search `google_search`. */
  #search(value: Schema.Json | undefined, provider: Schema.Json | undefined): boolean {
    const amount = isJsonObject(value) ? amountOf(value["search_context_size_medium"], 0) : undefined
    if (amount === undefined) return false
    const isGoogle = typeof provider === "string" && /^(gemini|vertex_ai(-language-models)?)$/.test(provider)
    this.#set(this.#base.units, `${toolUnit}.${isGoogle ? "google_search" : "web_search"}`, amount)
    return true
  }

  /** Prices by ranges of the prompt's tokens: the first range is the base. False if one has no such range. */
  #ranges(value: Schema.Json | undefined): boolean {
    if (!Array.isArray(value)) return false
    let isPlaced = true
    for (const part of value as ReadonlyArray<Schema.Json>) {
      const range = isJsonObject(part) ? part["range"] : undefined
      const from: unknown = Array.isArray(range) ? range[0] : undefined
      if (!isJsonObject(part) || typeof from !== "number" || !Number.isInteger(from) || from < 0) {
        isPlaced = false
        continue
      }
      const units = from === 0 ? this.#base.units : this.#step(this.#base, from)
      for (const [name, [unit, exponent]] of unitFields) {
        const amount = amountOf(part[name], exponent)
        if (amount !== undefined) this.#set(units, unit, amount)
      }
    }
    return isPlaced
  }
}

const amountsOf = (amounts: ReadonlyMap<string, bigint>): Record<string, Amount> =>
  Object.fromEntries(Array.from(amounts, ([name, amount]) => [name, written(amount)]))

/** Units in the form of the configuration, in the order of its documents. */
const unitsOf = (units: Units): RawConfig => {
  const tools = [...units].filter(([unit]) => unit.startsWith(`${toolUnit}.`))
    .map(([unit, amount]) => [unit.slice(toolUnit.length + 1), amount] as const)
  const others = [...tokenUnits, ...pieceUnits].flatMap((unit) => {
    const amount = units.get(unit)
    return amount === undefined ? [] : [[unit, written(amount)] as const]
  })
  return { ...Object.fromEntries(others), ...tools.length === 0 ? {} : { [toolUnit]: amountsOf(new Map(tools)) } }
}

const levelOf = ({ above, units }: Level): RawConfig => ({
  ...unitsOf(units),
  ...above.size === 0 ? {} : {
    above: [...above].sort(([a], [b]) => a - b).map(([tokens, units]) => ({ tokens, ...unitsOf(units) }))
  }
})

/** Prices of a file. */
interface ReadPrices {
  /** Entries of `prices`. */
  readonly prices: RawConfig
  readonly taken: number
  /** The number of entries without a price that has a place. */
  readonly unpriced: number
  /** Price fields without a place, with the number of their entries. */
  readonly placeless: ReadonlyMap<string, number>
}

/** Reads the prices of a file; of names that are equal but for case and blanks the last one counts. */
export const readPrices = Effect.fnUntraced(function*(file: RawConfig): Effect.fn.Return<ReadPrices> {
  const found = new Map<string, readonly [name: string, price: RawConfig]>()
  const placeless = new Map<string, number>()
  let unpriced = 0
  yield* forEachCooperatively(Object.entries(file), ([name, entry]) => {
    if (name === example) return
    const fields = new Set<string>()
    const price = isJsonObject(entry) ? new EntryReader(entry, fields).entry() : undefined
    for (const field of fields) placeless.set(field, (placeless.get(field) ?? 0) + 1)
    const normal = normalizeModelName(name)
    // A `*` within a name stands for places and contracts, which no request names.
    if (price === undefined || normal === "" || normal.slice(0, -1).includes("*")) unpriced++
    else found.set(normal, [name, price])
  })
  return { prices: Object.fromEntries(found.values()), taken: found.size, unpriced, placeless }
})

/** The amounts of an entry by their places, each as it is written without extra digits. */
const flat = (value: Schema.Json | undefined, place = ""): ReadonlyArray<readonly [place: string, amount: string]> => {
  if (Array.isArray(value)) {
    return (value as ReadonlyArray<Schema.Json>).flatMap((each) => {
      if (!isJsonObject(each)) return []
      const { tokens, ...units } = each
      return flat(units, `${place}.${String(tokens)}`)
    })
  }
  if (isJsonObject(value)) {
    return Object.entries(value).flatMap(([name, field]) =>
      name === "from" && place === "" ? [] : flat(field, place === "" ? name : `${place}.${name}`)
    )
  }
  const amount = typeof value === "number" || typeof value === "string" ? parseDecimal(value) : undefined
  return amount === undefined ? [] : [[place, formatDecimal(amount)]]
}

/** A name whose prices the import sets, with its amounts by their places. */
export interface PriceChange {
  readonly name: string
  /** `undefined` for a new name. */
  readonly before: ReadonlyMap<string, string> | undefined
  readonly after: ReadonlyMap<string, string>
}

/** What an import does to the prices of a configuration. */
export interface PriceDifference {
  readonly changes: ReadonlyArray<PriceChange>
  readonly unchanged: number
}

const startOf = (entry: Schema.Json): number =>
  isJsonObject(entry) && typeof entry["from"] === "string" ? priceStart(entry["from"]) ?? -Infinity : -Infinity

/** The prices of an entry in the order of their beginnings, without those that later ones have replaced by now. */
const inForce = (entry: Schema.Json, now: number): ReadonlyArray<Schema.Json> => {
  const sorted = (Array.isArray(entry) ? [...entry as ReadonlyArray<Schema.Json>] : [entry])
    .sort((a, b) => startOf(a) - startOf(b))
  const begun = sorted.findLastIndex((each) => startOf(each) <= now)
  return sorted.slice(Math.max(0, begun))
}

/** How prices are imported. */
export interface ImportOptions {
  /** Unix milliseconds. */
  readonly now: number
  /** The day or time from which the prices count, behind those in force; immediately without it. */
  readonly from?: string | undefined
}

const equal = (a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean =>
  a.size === b.size && [...a].every(([place, amount]) => b.get(place) === amount)

/** Adds prices to those of a configuration, in place of prices of the same name. Names that have the same prices stay as they are written. */
const withPrices = (
  raw: RawConfig,
  prices: RawConfig,
  { from, now }: ImportOptions
): { readonly next: RawConfig; readonly difference: PriceDifference } => {
  const before = isJsonObject(raw["prices"]) ? raw["prices"] : {}
  const known = new Map(Object.keys(before).map((name) => [normalizeModelName(name), name]))
  const entries = new Map(Object.entries(before))
  const changes: Array<PriceChange> = []
  let unchanged = 0
  for (const [name, price] of Object.entries(prices)) {
    const former = known.get(normalizeModelName(name))
    const list = former === undefined ? [] : inForce(before[former]!, now)
    const [current] = list
    const after = new Map(flat(price))
    const was = current === undefined ? undefined : new Map(flat(current))
    if (was !== undefined && equal(was, after)) {
      unchanged++
      continue
    }
    changes.push({ name, before: was, after })
    if (former !== undefined) entries.delete(former)
    const start = from === undefined ? undefined : priceStart(from)
    const kept = list.filter((each) => startOf(each) !== start)
    entries.set(name, from === undefined ? price : [...kept, { from, ...price as RawConfig }])
  }
  return { next: { ...raw, prices: Object.fromEntries(entries) }, difference: { changes, unchanged } }
}

/**
 * Writes prices into a configuration file, which is made if it is missing. Nothing else in it changes. Writes nothing with `isTrial`, and if
 * all prices are there.
 */
export const savePrices = (
  file: ConfigFile,
  prices: RawConfig,
  options: ImportOptions & { readonly isTrial?: boolean }
) => {
  const import_ = Effect.gen(function*() {
    const content = yield* file.read
    const raw = Option.isNone(content) ? {} : yield* parseConfig(file.path, content.value.text)
    const { difference, next } = withPrices(raw, prices, options)
    yield* decodeConfig(next, { source: file.path, duplicates: "keep-first" })
    if (options.isTrial !== true && difference.changes.length > 0) {
      yield* file.replace(yield* stringifyConfig(next, "indented"))
    }
    return difference
  })
  return options.isTrial === true ? import_ : file.exclusively(import_)
}
