/**
 * Prices of models: what is shown of them, and how one is changed.
 */
import * as Effect from "effect/Effect"
import { report } from "../../state/actions.ts"
import type { Reply } from "../../state/client.ts"
import { saveEntry } from "../../state/mapEntry.ts"
import { readOf } from "../../state/reads.ts"

type PricesReply = Reply<"admin-prices", "get">
export type Prices = PricesReply["prices"]
export type Price = Prices[string]
export type PricedTarget = PricesReply["targets"][number]

export const pricesAtom = readOf("admin-prices", "get", {
  reactivityKeys: ["config", "upstreams", "routes"]
})

/** Whether an entry has prices by their dates, which the file alone can change. */
export const isDated = (price: Price): price is Extract<Price, ReadonlyArray<unknown>> => Array.isArray(price)

/** The missing prices that nothing stands in for. */
export const bareOf = ({ missing }: Pick<PricedTarget, "missing">): PricedTarget["missing"] =>
  missing.filter((unit) => unit === "input" || unit === "output")

/** The names under which a price for a target may stand, the one that counts first. */
export const namesFor = ({ listed, name, price, server_model, target }: PricedTarget): ReadonlyArray<string> => [
  ...new Set([...price === null || listed !== null ? [] : [price], target, name, server_model])
]

/** Names of entries that price none of the targets. */
export const unusedNames = (prices: Prices, targets: ReadonlyArray<PricedTarget>): ReadonlyArray<string> => {
  const used = new Set(targets.map(({ price }) => price))
  return Object.keys(prices).filter((name) => !used.has(name))
}

/** Sets the price of a name; `undefined` deletes it. Resolves to why nothing was saved. */
export const savePrice = async (
  name: string,
  before: Price | undefined,
  price: Price | undefined,
  texts: { readonly changedMeanwhile: string; readonly saved: (name: string) => string }
): Promise<string | undefined> => {
  const refused = await saveEntry(
    {
      read: (client) =>
        Effect.map(client["admin-prices"].get(), ({ prices, revision }) => ({ entries: prices, revision })),
      write: (client, prices, headers) => client["admin-prices"].set({ headers, payload: { prices } }),
      subjects: ["config"]
    },
    name,
    before,
    price,
    texts.changedMeanwhile
  )
  if (refused === undefined) report(texts.saved(name))
  return refused
}
