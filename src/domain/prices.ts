/**
 * Prices of models. Pure.
 */
import { normalizeModelName } from "./models.ts"

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

/** The configured prices, indexed by names in normal form. */
export interface PriceTable {
  /** By `upstream/model` or a model's id. */
  readonly exact: ReadonlyMap<string, PricedEntry>
  /** Names that ended in `*`, without it; the longest first. */
  readonly prefixes: ReadonlyArray<readonly [prefix: string, entry: PricedEntry]>
  /** The servers' own names of models in normal form, by `upstream/model`; absent where both names are equal. */
  readonly served?: ReadonlyMap<string, string>
}

/** No prices. */
export const noPrices: PriceTable = { exact: new Map(), prefixes: [] }

/** True without any price. */
export const isUnpriced = ({ exact, prefixes }: PriceTable): boolean => exact.size === 0 && prefixes.length === 0

/** Indexes prices by name. */
export const makePriceTable = (prices: Iterable<readonly [name: string, entry: PricedEntry]>): PriceTable => {
  const exact = new Map<string, PricedEntry>()
  const prefixes: Array<readonly [string, PricedEntry]> = []
  for (const [name, entry] of prices) {
    if (name.endsWith("*")) prefixes.push([name.slice(0, -1), entry])
    else exact.set(name, entry)
  }
  return { exact, prefixes: prefixes.sort(([a], [b]) => b.length - a.length) }
}

/** A price with the name of its entry in `prices`, in normal form. */
export interface NamedPrice extends DatedPrice {
  readonly entry: string
}

/**
 * The price of an upstream's model at a time in Unix milliseconds; `undefined` without one. `asked` is the gateway's name for what was asked
 * for. An entry that has not begun is no price.
 *
 * Exact names come first, in this order: the gateway's name, if it is that of a route rather than the model's id; `upstream/model`; the
 * model's id; the server's own name, with and without the upstream. Of the prefixes, the longest one of `upstream/` comes first, then the
 * longest one of the other names.
 */
export const findPrice = (
  table: PriceTable,
  now: number,
  upstream: string,
  model: string,
  asked = model
): NamedPrice | undefined => {
  if (isUnpriced(table)) return undefined
  const { exact, prefixes, served } = table
  const id = normalizeModelName(model)
  const target = `${upstream}/${id}`
  const name = normalizeModelName(asked)
  const own = served?.get(target)
  const within = own === undefined ? [target] : [target, `${upstream}/${own}`]
  const names = own === undefined ? [id] : [id, own]
  const isOther = name !== id && name !== target
  for (const entry of [...isOther ? [name] : [], target, id, ...within.slice(1), ...names.slice(1)]) {
    const price = exact.get(entry)?.at(now)
    if (price !== undefined) return { ...price, entry }
  }
  if (isOther) names.push(name)
  const first = (fits: (prefix: string) => boolean): NamedPrice | undefined => {
    for (const [prefix, entry] of prefixes) {
      const price = fits(prefix) ? entry.at(now) : undefined
      if (price !== undefined) return { ...price, entry: `${prefix}*` }
    }
    return undefined
  }
  const begins = (prefix: string) => (entry: string) => entry.startsWith(prefix)
  return first((prefix) => prefix.length > upstream.length && within.some(begins(prefix))) ??
    first((prefix) => names.some(begins(prefix)))
}

/** The price that `findPrice` finds. */
export const priceOf = (
  table: PriceTable,
  now: number,
  upstream: string,
  model: string,
  asked?: string
): Price | undefined => findPrice(table, now, upstream, model, asked)?.price
