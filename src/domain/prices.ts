/**
 * Prices of models. Pure.
 */
import { normalizeModelName } from "./models.ts"
import { findNamed, findOfVendor, type NameTable } from "./nameTable.ts"

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
  /** The day of the vendors' list that has it, as text; `undefined` for a configured price. */
  readonly listed: string | undefined
  /** By service tier, in lower case. */
  readonly tiers: ReadonlyMap<string, PriceLevel>
  /** Multiply the prices of tokens, in integers of 10^-9: by field of the usage body, then by value. */
  readonly factors: ReadonlyMap<string, ReadonlyMap<string, bigint>>
}

const none: ReadonlyMap<string, never> = new Map<string, never>()

/** A price of units alone. */
export const plainPrice = (units: UnitPrices): Price => ({
  listed: undefined,
  units,
  above: [],
  tiers: none,
  factors: none
})

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

/** What the servers of upstreams call their models, and what the vendors' lists say of these. */
export interface ServedPrices {
  /** The servers' own names of models in normal form, by `upstream/model`; absent where both names are equal. */
  readonly names: ReadonlyMap<string, string>
  /** List prices by the vendors' names of models, below all that is configured; empty if they are switched off. */
  readonly list: NameTable<PricedEntry>
  /** Whether the list's prices count for an upstream's model, by the server's own name. That depends on who serves it, and where. */
  readonly isListed: (upstream: string, model: string) => boolean
}

/** The configured prices. */
export interface PriceTable extends NameTable<PricedEntry> {
  readonly served?: ServedPrices
}

/** A server's own name of a model of an upstream, in normal form. */
export const servedName = ({ served }: PriceTable, upstream: string, model: string): string => {
  const id = normalizeModelName(model)
  return served?.names.get(`${upstream}/${id}`) ?? id
}

/**
 * The list price of a model by the server's own name for it. An id or a route may have the name of another vendor's model, for clients that ask
 * for it.
 */
const listPriceOf = (table: PriceTable, now: number, upstream: string, model: string): NamedPrice | undefined => {
  const { served } = table
  const name = servedName(table, upstream, model)
  if (served?.isListed(upstream, name) !== true) return undefined
  const found = findOfVendor(served.list, name)?.at(now)
  return found && { ...found, entry: `list price of ${found.price.listed}` }
}

/** A price with the name of its entry in `prices`, in normal form, or which list has it. */
export interface NamedPrice extends DatedPrice {
  readonly entry: string
}

/**
 * The price of an upstream's model at a time in Unix milliseconds, in the order of names of `findNamed`; `undefined` without one. `asked` is
 * the gateway's name for what was asked for. An entry that has not begun is no price. The list price counts where no entry does.
 */
export const findPrice = (
  table: PriceTable,
  now: number,
  upstream: string,
  model: string,
  asked = model
): NamedPrice | undefined => {
  const served = table.served?.names.get(`${upstream}/${normalizeModelName(model)}`)
  const named = findNamed(table, { upstream, model, served, asked }, (entry) => entry.at(now))
  return named === undefined ? listPriceOf(table, now, upstream, model) : { ...named.found, entry: named.entry }
}

/** The price that `findPrice` finds. */
export const priceOf = (
  table: PriceTable,
  now: number,
  upstream: string,
  model: string,
  asked?: string
): Price | undefined => findPrice(table, now, upstream, model, asked)?.price
