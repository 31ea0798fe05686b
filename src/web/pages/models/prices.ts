/**
 * Prices of models: what is shown of them, and how one is changed.
 */
import * as Exit from "effect/Exit"
import { call, reload, report } from "../../state/actions.ts"
import { Admin, type Reply } from "../../state/client.ts"
import { causeText } from "../../state/failure.ts"

type PricesReply = Reply<"admin-prices", "get">
export type Prices = PricesReply["prices"]
export type Entry = Prices[string]
export type PricedTarget = PricesReply["targets"][number]

export const units = ["input", "cached_input", "output", "per_request"] as const
export type Unit = (typeof units)[number]

export const pricesAtom = Admin.query("admin-prices", "get", {
  reactivityKeys: ["config", "upstreams", "routes"]
})

/** The names under which a price for a target may stand, the one that counts first. */
export const namesFor = ({ name, price, server_model, target }: PricedTarget): ReadonlyArray<string> => [
  ...new Set([...price === null ? [] : [price], target, name, server_model])
]

/** Names of entries that price none of the targets. */
export const unusedNames = (prices: Prices, targets: ReadonlyArray<PricedTarget>): ReadonlyArray<string> => {
  const used = new Set(targets.map(({ price }) => price))
  return Object.keys(prices).filter((name) => !used.has(name))
}

/** A price as it is written: a number where that keeps every digit. */
const written = (text: string): number | string => String(Number(text)) === text ? Number(text) : text

/** The entry of a form's texts; `undefined` if all of them are empty. */
export const entryOf = (texts: Readonly<Record<Unit, string>>): Entry | undefined => {
  const given = units.flatMap((unit) => {
    const text = texts[unit].trim()
    return text === "" ? [] : [[unit, written(text)] as const]
  })
  return given.length === 0 ? undefined : Object.fromEntries(given)
}

/**
 * Sets one of the prices that are configured now; `undefined` deletes it. `before` is the entry as it was shown: one that has changed
 * since is left as it is. Resolves to why nothing was saved.
 */
export const savePrice = async (
  name: string,
  before: Entry | undefined,
  entry: Entry | undefined,
  texts: { readonly changedMeanwhile: string; readonly saved: (name: string) => string }
): Promise<string | undefined> => {
  const current = await call((client) => client["admin-prices"].get())
  if (Exit.isFailure(current)) return causeText(current.cause)
  const { prices, revision } = current.value
  if (JSON.stringify(prices[name]) !== JSON.stringify(before)) {
    reload("config")
    return texts.changedMeanwhile
  }
  const { [name]: _, ...others } = prices
  const next = entry === undefined ? others : { ...prices, [name]: entry }
  const saved = await call((client) =>
    client["admin-prices"].set({ headers: { "if-match": `"${revision}"` }, payload: { prices: next } })
  )
  reload("config")
  if (Exit.isFailure(saved)) return causeText(saved.cause)
  report(texts.saved(name))
  return undefined
}
