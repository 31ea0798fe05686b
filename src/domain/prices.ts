/**
 * Prices of models, and what a request costs. Pure.
 *
 * The cost of a request is exact up to one rounding to 10^-9, half up. Sums of costs are exact.
 */
import { normalizeModelName } from "./models.ts"
import type { Usage } from "./ReplyEvent.ts"
import type { Route, Target } from "./routes.ts"

/** The price of a model in integers of 10^-9: per million tokens, and per request. */
export interface Price {
  readonly input: bigint
  readonly cachedInput: bigint
  readonly output: bigint
  readonly perRequest: bigint
}

/** The configured prices, indexed by names in normal form. */
export interface PriceTable {
  /** By `upstream/model` or a model's id. */
  readonly exact: ReadonlyMap<string, Price>
  /** Names that ended in `*`, without it; the longest first. */
  readonly prefixes: ReadonlyArray<readonly [prefix: string, price: Price]>
  /** The servers' own names of models in normal form, by `upstream/model`; absent where both names are equal. */
  readonly served?: ReadonlyMap<string, string>
}

/** No prices. */
export const noPrices: PriceTable = { exact: new Map(), prefixes: [] }

/** Indexes prices by name. */
export const makePriceTable = (prices: Iterable<readonly [name: string, price: Price]>): PriceTable => {
  const exact = new Map<string, Price>()
  const prefixes: Array<readonly [string, Price]> = []
  for (const [name, price] of prices) {
    if (name.endsWith("*")) prefixes.push([name.slice(0, -1), price])
    else exact.set(name, price)
  }
  return { exact, prefixes: prefixes.sort(([a], [b]) => b.length - a.length) }
}

/** The name of an entry of `prices`, in normal form, with its price. */
export type PriceOfName = readonly [entry: string, price: Price]

/**
 * The price of an upstream's model with the name of its entry; `undefined` without one. `asked` is the gateway's name for what was asked for.
 *
 * Exact names come first, in this order: the gateway's name, if it is that of a route rather than the model's id; `upstream/model`; the
 * model's id; the server's own name, with and without the upstream. Of the prefixes, the longest one of `upstream/` comes first, then the
 * longest one of the other names.
 */
export const findPrice = (
  { exact, prefixes, served }: PriceTable,
  upstream: string,
  model: string,
  asked = model
): PriceOfName | undefined => {
  if (exact.size === 0 && prefixes.length === 0) return undefined
  const id = normalizeModelName(model)
  const target = `${upstream}/${id}`
  const name = normalizeModelName(asked)
  const own = served?.get(target)
  const within = own === undefined ? [target] : [target, `${upstream}/${own}`]
  const names = own === undefined ? [id] : [id, own]
  const isOther = name !== id && name !== target
  for (const entry of [...isOther ? [name] : [], target, id, ...within.slice(1), ...names.slice(1)]) {
    const price = exact.get(entry)
    if (price !== undefined) return [entry, price]
  }
  if (isOther) names.push(name)
  const begins = (prefix: string) => (entry: string) => entry.startsWith(prefix)
  const found = prefixes.find(([prefix]) => prefix.length > upstream.length && within.some(begins(prefix))) ??
    prefixes.find(([prefix]) => names.some(begins(prefix)))
  return found && [`${found[0]}*`, found[1]]
}

/** The price that `findPrice` finds. */
export const priceOf = (table: PriceTable, upstream: string, model: string, name?: string): Price | undefined =>
  findPrice(table, upstream, model, name)?.[1]

const million = 1_000_000n

/** The cost of a request in integers of 10^-9. Cached tokens are part of the prompt. */
export const costOf = (
  { cachedInput, input, output, perRequest }: Price,
  { cachedTokens, completionTokens, promptTokens }: Pick<Usage, "promptTokens" | "cachedTokens" | "completionTokens">
): bigint => {
  const cached = Math.min(cachedTokens, promptTokens)
  const millionths = BigInt(promptTokens - cached) * input + BigInt(cached) * cachedInput +
    BigInt(completionTokens) * output
  return (millionths + million / 2n) / million + perRequest
}

/** The first target that may answer and has no price; `undefined` if all have one. */
export const unpricedTarget = (table: PriceTable, { id, targets }: Route): Target | undefined =>
  targets.find(({ enabled, model, upstream }) => enabled && priceOf(table, upstream, model.id, id) === undefined)

/** The most that a prompt costs at any target of a route. */
export const promptCost = (table: PriceTable, { id, targets }: Route, promptTokens: number): bigint => {
  let most = 0n
  for (const { enabled, model, upstream } of targets) {
    const price = enabled ? priceOf(table, upstream, model.id, id) : undefined
    if (price === undefined) continue
    const cost = costOf(price, { promptTokens, cachedTokens: 0, completionTokens: 0 })
    if (cost > most) most = cost
  }
  return most
}
