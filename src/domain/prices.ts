/**
 * Prices of models. Pure.
 */
import { normalizeModelName } from "./models.ts"
import { findNamed, type NameTable } from "./nameTable.ts"

/** Prices by unit in integers of 10^-9: of a million tokens, or of one piece. */
export type UnitPrices = ReadonlyMap<string, bigint>

/** Prices that a long prompt changes. */
export interface PriceLevel {
  readonly units: UnitPrices
  /** The steps, the longest prompt first. A step prices the whole of a request whose prompt exceeds its tokens. */
  readonly above: ReadonlyArray<{ readonly tokens: number; readonly units: UnitPrices }>
}

/** The prices of a model. */
export interface Price extends PriceLevel {
  /** By service tier, in lower case. */
  readonly tiers: ReadonlyMap<string, PriceLevel>
  /** Multiply the prices of tokens, in integers of 10^-9: by field of the usage body, then by value. */
  readonly factors: ReadonlyMap<string, ReadonlyMap<string, bigint>>
}

const none: ReadonlyMap<string, never> = new Map<string, never>()

/** A price of units alone. */
export const plainPrice = (units: UnitPrices): Price => ({ units, above: [], tiers: none, factors: none })

/** A price that counts from a time on, in Unix milliseconds; from ever without one. */
export interface DatedPrice {
  readonly from?: number | undefined
  readonly price: Price
}

/** An entry of `prices`, made of its prices at its first use. */
export class PricedEntry {
  readonly #make: () => ReadonlyArray<DatedPrice>
  #prices: ReadonlyArray<DatedPrice> | undefined

  constructor(make: () => ReadonlyArray<DatedPrice>) {
    this.#make = make
  }

  /** The latest price that has begun, in Unix milliseconds; `undefined` if none has. Of two that began together the later one counts. */
  at(now: number): DatedPrice | undefined {
    const prices = this.#prices ??= this.#make()
    let latest: DatedPrice | undefined
    for (const price of prices) {
      const from = price.from ?? -Infinity
      if (from <= now && from >= (latest?.from ?? -Infinity)) latest = price
    }
    return latest
  }
}

/** The configured prices. */
export interface PriceTable extends NameTable<PricedEntry> {
  /** The servers' own names of models in normal form, by `upstream/model`; absent where both names are equal. */
  readonly served?: ReadonlyMap<string, string>
}

/** A price with the name of its entry in `prices`, in normal form. */
export interface NamedPrice extends DatedPrice {
  readonly entry: string
}

/**
 * The price of an upstream's model at a time in Unix milliseconds, in the order of names of `findNamed`; `undefined` without one. `asked` is
 * the gateway's name for what was asked for. An entry that has not begun is no price.
 */
export const findPrice = (
  table: PriceTable,
  now: number,
  upstream: string,
  model: string,
  asked = model
): NamedPrice | undefined => {
  const served = table.served === undefined ? undefined : table.served.get(`${upstream}/${normalizeModelName(model)}`)
  const named = findNamed(table, { upstream, model, served, asked }, (entry) => entry.at(now))
  return named && { ...named.found, entry: named.entry }
}

/** The price that `findPrice` finds. */
export const priceOf = (
  table: PriceTable,
  now: number,
  upstream: string,
  model: string,
  asked?: string
): Price | undefined => findPrice(table, now, upstream, model, asked)?.price
