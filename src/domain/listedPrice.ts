/**
 * What a list of models tells about the price of a model. Pure.
 */
import { priceOf, type PriceTable } from "./prices.ts"
import type { Route } from "./routes.ts"

/** Decimal text of an integer of 10^-9 of a million tokens, as the price of one token. */
const perToken = (amount: bigint): string => inDecimals(amount, 15)

const inDecimals = (amount: bigint, decimals: number): string => {
  const digits = amount.toString().padStart(decimals + 1, "0")
  const fraction = digits.slice(-decimals).replace(/0+$/, "")
  return `${digits.slice(0, -decimals)}${fraction === "" ? "" : `.${fraction}`}`
}

/** A price with the names of OpenRouter. */
export type ListedPrice = { readonly [unit: string]: string }

/** The prices of a route at a time in Unix milliseconds, if all its targets have the same; `undefined` otherwise, and without any. */
export const listedPrice = (
  table: PriceTable,
  now: number,
  { id, targets }: Pick<Route, "id" | "targets">
): ListedPrice | undefined => {
  const prices = targets.map(({ model, upstream }) => {
    const price = priceOf(table, now, upstream, model.id, id)
    // Clients see what the operator has set.
    if (price === undefined || price.listed !== undefined) return undefined
    const { units } = price
    const [cached, each] = [units.get("cached_input"), units.get("per_request")]
    return {
      prompt: perToken(units.get("input") ?? 0n),
      completion: perToken(units.get("output") ?? 0n),
      ...(cached === undefined ? {} : { input_cache_read: perToken(cached) }),
      ...(each === undefined ? {} : { request: inDecimals(each, 9) })
    }
  })
  const [first] = prices
  const same = JSON.stringify(first)
  return prices.every((price) => JSON.stringify(price) === same) ? first : undefined
}
