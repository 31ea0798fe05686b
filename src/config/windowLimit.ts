/** The limit of a window: of a key, of an account or of an upstream. */
import { parseDecimal, splitAmount } from "../domain/decimal.ts"
import type { windowNames } from "../domain/windowNames.ts"
import type { BudgetEntry } from "./schema.ts"

export type WindowName = (typeof windowNames)[number]

export interface KeyLimit {
  readonly window: WindowName
  readonly requests: number | undefined
  readonly tokens: number | undefined
  /** An amount of 10^-9 (`domain/decimal.ts`). */
  readonly cost?: bigint | undefined
  /** Requests reserve the most that they can use. */
  readonly strict?: boolean | undefined
  /** The model or route that serves requests beyond the limit, as configured; budgets have none. */
  readonly fallback?: string | undefined
}

/** The letters of windows in the store. */
export const windowLetters: { readonly [Window in WindowName]: string } = {
  minute: "m",
  hour: "h",
  day: "d",
  week: "w",
  month: "M"
}

/** A limit as the scripts of the store take it (`windows.lua`); -1 stands for none. */
export const limitFields = ({ cost, requests = -1, strict = false, tokens = -1, window }: KeyLimit) => [
  windowLetters[window],
  requests,
  tokens,
  ...(cost === undefined ? [-1, 0] : splitAmount(cost)),
  strict ? 1 : 0
]

/** Decodes a limit without its fallback. */
export const toLimit = (
  { cost, requests, strict, tokens, window }: typeof BudgetEntry.Type
): Omit<KeyLimit, "fallback"> => ({
  window,
  requests,
  tokens,
  ...(cost === undefined ? {} : { cost: parseDecimal(cost) }),
  ...(strict === true ? { strict } : {})
})
