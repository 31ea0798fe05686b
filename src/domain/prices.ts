/**
 * Prices of models, and what a request costs. Pure.
 *
 * The cost of a request is exact up to one rounding to 10^-9, half up. Sums of costs are exact.
 */
import { normalizeModelName } from "./models.ts"
import type { Usage } from "./ReplyEvent.ts"
import type { Route } from "./routes.ts"

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

/**
 * The price of an upstream's model; `undefined` without one. An exact name comes before a prefix, `upstream/model` before the bare
 * id, and a longer prefix before a shorter one.
 */
export const priceOf = ({ exact, prefixes }: PriceTable, upstream: string, model: string): Price | undefined => {
  if (exact.size === 0 && prefixes.length === 0) return undefined
  const id = normalizeModelName(model)
  const target = `${upstream}/${id}`
  return exact.get(target) ?? exact.get(id) ??
    prefixes.find(([prefix]) => prefix.length > upstream.length && target.startsWith(prefix))?.[1] ??
    prefixes.find(([prefix]) => id.startsWith(prefix))?.[1]
}

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

/** Whether every target that may answer has a price. */
export const isPriced = (table: PriceTable, { targets }: Route): boolean =>
  targets.every(({ enabled, model, upstream }) => !enabled || priceOf(table, upstream, model.id) !== undefined)

/** The most that a prompt costs at any target of a route. */
export const promptCost = (table: PriceTable, { targets }: Route, promptTokens: number): bigint => {
  let most = 0n
  for (const { enabled, model, upstream } of targets) {
    const price = enabled ? priceOf(table, upstream, model.id) : undefined
    if (price === undefined) continue
    const cost = costOf(price, { promptTokens, cachedTokens: 0, completionTokens: 0 })
    if (cost > most) most = cost
  }
  return most
}
