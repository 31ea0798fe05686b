/** What is used of the windows of limits, as the scripts of the store take and give it (`windows.lua`). */
import { joinAmount, splitAmount } from "../domain/decimal.ts"
import { windowNames } from "../domain/windowNames.ts"
import { type Amounts, type WindowCount, windowsAt } from "./Admission.ts"

/** Fields of a window in a reply: requests, tokens, and the cost in whole units and nanos. */
const fieldsPerWindow = 4

/** Fields of all windows of one key, account or upstream in a reply. */
export const windowFields = fieldsPerWindow * windowNames.length

/** Reads the windows of a reply. `now` is the store's time, in Unix milliseconds. */
export const readWindows = (now: number, fields: ReadonlyArray<string>): ReadonlyArray<WindowCount> =>
  windowsAt(now, (_, i) => {
    const [requests = 0, tokens = 0, units = 0, nanos = 0] = fields
      .slice(i * fieldsPerWindow, (i + 1) * fieldsPerWindow).map(Number)
    return { requests, tokens, cost: joinAmount(units, nanos) }
  })

/** Keys, accounts and upstreams whose last known usage a node keeps for a store that loses it: those that were used last. */
const mostSeen = 10_000

/** What the store last said of usage: its time, then the fields of the windows. A node brings it back to older data. */
export class SeenWindows {
  readonly #seen = new Map<string, { readonly at: number; readonly windows: ReadonlyArray<string> }>()

  /** Keeps the windows of a key from a reply. The keys that were used last are at the end. */
  keep(key: string, at: number, windows: ReadonlyArray<string>): void {
    this.#seen.delete(key)
    this.#seen.set(key, { at, windows })
    if (this.#seen.size > mostSeen) this.#seen.delete(this.#seen.keys().next().value!)
  }

  /** The windows of a key, as they were said last; none without a word. */
  of(key: string): ReadonlyArray<WindowCount> {
    const seen = this.#seen.get(key)
    return seen === undefined ? [] : readWindows(seen.at, seen.windows)
  }

  /** What was said since a time, as the scripts take it. */
  since(time: number): ReadonlyArray<ReadonlyArray<string | number>> {
    return Array.from(this.#seen).filter(([, { at }]) => at >= time).map(([key, { at, windows }]) => [
      key,
      at,
      ...windows.map(Number)
    ])
  }
}

export type ShareFields = readonly [tokens: number, units: number, nanos: number]

/** What a request reserves or has used, as the scripts take it. */
export const shareFields = ({ cost, tokens }: Amounts): ShareFields => [tokens, ...splitAmount(cost)]
