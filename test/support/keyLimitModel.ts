/** A plain model of the limits of keys: what a request reserves of each window, and what becomes of it. */
import * as fc from "fast-check"
import type { RawConfig } from "../../src/config/json.ts"
import type { KeyRecord } from "../../src/config/keyRecords.ts"
import type { KeyLimit, WindowName } from "../../src/config/windowLimit.ts"
import { tokensAlone } from "../../src/domain/bill.ts"
import { formatDecimal } from "../../src/domain/decimal.ts"
import type { Route } from "../../src/domain/routes.ts"
import { windowNames } from "../../src/domain/windowNames.ts"
import type { Bound } from "../../src/usage/keyRules.ts"

const other = "upstream-reasoner"
const unit = 1_000_000_000n

/** Costs beyond the numbers that are exact: 2^53 + 1 nanos a request, and 999.999999999 a token, rounded. Fallbacks cost less. */
export const prices = {
  "upstream-chat": { input: "999999999.999999999", per_request: "9007199.254740993" },
  [other]: { input: "1000000", output: "2000000", per_request: "3" }
}

const costOf = (tokens: number, output: number, isFallback: boolean): bigint =>
  isFallback
    ? (3n + BigInt(tokens) + 2n * BigInt(output)) * unit
    : 9_007_199_254_740_993n + BigInt(tokens) * 1_000n * unit

const upTo = (max: number) => fc.option(fc.integer({ min: 1, max }), { nil: undefined })
const costs = fc.bigInt({ min: 1n, max: 40n * 2n ** 53n })

/** Limits with or without strictness and fallbacks. */
export const limits = fc.subarray([...windowNames]).chain((windows) =>
  fc.tuple(...windows.map((window) =>
    fc.record({
      window: fc.constant(window),
      requests: upTo(40),
      tokens: upTo(100),
      cost: fc.option(costs, { nil: undefined, freq: 2 }),
      strict: fc.option(fc.constant(true), { nil: undefined, freq: 2 }),
      fallback: fc.option(fc.constant(other), { nil: undefined, freq: 2 })
    }).filter(({ cost, requests, tokens }) => requests !== undefined || tokens !== undefined || cost !== undefined)
  ))
)

/** Limits as the file has them. */
export const rawLimits = (limits: ReadonlyArray<KeyLimit>): ReadonlyArray<RawConfig> =>
  limits.map((limit) =>
    Object.fromEntries(
      Object.entries(limit).flatMap(([name, value]) =>
        value === undefined ? [] : [[name, typeof value === "bigint" ? formatDecimal(value) : value]]
      )
    )
  )

/** What a request may use, if a strict limit asks: two tries with its prompt and as much output. */
export const boundsOf = (tokens: number) => ({ targets }: Route): ReadonlyArray<Bound> =>
  targets.map((target) => ({
    target,
    most: { ...tokensAlone, promptTokens: tokens, completionTokens: tokens },
    tries: 2
  }))

export interface Counts {
  readonly requests: number
  readonly tokens: number
  readonly cost: bigint
}

/** What a request has in a window: reserved, or used. */
export type InWindow = (window: WindowName) => Omit<Counts, "requests">

export const nothing: InWindow = () => ({ tokens: 0, cost: 0n })

/** What a request of so many tokens reserves. */
export const reservedBy = (limits: ReadonlyArray<KeyLimit>, tokens: number, isFallback: boolean): InWindow => {
  const hasCost = limits.some(({ cost }) => cost !== undefined)
  if (!hasCost && limits.every((limit) => limit.tokens === undefined)) return nothing
  return (window) => {
    const limit = limits.find((each) => each.window === window)
    const isStrict = limit?.strict === true && (limit.tokens !== undefined || limit.cost !== undefined)
    const strictCost = 2n * costOf(tokens, tokens, isFallback)
    return isStrict
      ? { tokens: 4 * tokens, cost: strictCost }
      : { tokens, cost: hasCost ? costOf(tokens, 0, isFallback) : 0n }
  }
}

/** Whether a fallback serves a request; `undefined` for a refusal. */
export const judged = (
  { limits }: Pick<KeyRecord, "limits">,
  tokens: number,
  takesFallback: boolean,
  used: (window: WindowName) => Counts
): { readonly isFallback: boolean } | undefined => {
  /** The longest window whose fallback serves. */
  let level = -1
  for (;;) {
    const isFallback = level >= 0
    const reserved = reservedBy(limits, tokens, isFallback)
    const exceeded = limits.filter(({ cost, fallback, requests = Infinity, tokens: most = Infinity, window }) => {
      if (isFallback && fallback !== undefined && windowNames.indexOf(window) <= level) return false
      const sum = used(window)
      const own = reserved(window)
      return sum.requests + 1 > requests || sum.tokens + own.tokens > most ||
        (cost !== undefined && sum.cost + own.cost > cost)
    })
    if (exceeded.length === 0) return { isFallback }
    if (!takesFallback || exceeded.some(({ fallback }) => fallback === undefined)) return undefined
    level = Math.max(...exceeded.map(({ window }) => windowNames.indexOf(window)))
  }
}
