/**
 * What a key has used of its limits, as its operator and its holder see it.
 */
import type { KeyRecord } from "../config/keyRecords.ts"
import type { KeyLimit } from "../config/windowLimit.ts"
import { formatDecimal, toUnits } from "../domain/decimal.ts"
import type { KeyUsage } from "./keyRules.ts"

const spent = (limit: number | undefined, used: number) =>
  limit === undefined ? null : { limit, used, remaining: Math.max(0, limit - used) }

const spentCost = (limit: bigint | undefined, used: bigint) =>
  limit === undefined ? null : {
    limit: formatDecimal(limit),
    used: formatDecimal(used),
    remaining: formatDecimal(used > limit ? 0n : limit - used)
  }

/** The windows of a key's limits. Times are milliseconds of Unix time; costs are decimal numbers. */
export const limitedWindows = (record: KeyRecord | undefined, { windows }: Pick<KeyUsage, "windows">) =>
  usedWindows(record?.limits ?? [], windows)

/** What is used of limits, or of budgets. Times are milliseconds of Unix time; costs are decimal numbers. */
export const usedWindows = (limits: ReadonlyArray<KeyLimit>, windows: KeyUsage["windows"]) =>
  limits.map(({ cost, fallback = null, requests, strict = false, tokens, window }) => {
    const count = windows.find((each) => each.window === window)!
    return {
      window,
      strict,
      fallback,
      requests: spent(requests, count.requests),
      tokens: spent(tokens, count.tokens),
      cost: spentCost(cost, count.cost),
      startedAt: count.startedAt,
      resetsAt: count.resetsAt
    }
  })

/** How much of each limit of a key is used: 0 for nothing, 1 for all of it, more if requests took more than was estimated. */
export const usedRatios = (record: KeyRecord | undefined, { windows }: KeyUsage) =>
  (record?.limits ?? []).flatMap(({ cost, requests, tokens, window }) => {
    const count = windows.find((each) => each.window === window)!
    const ratios = {
      requests: requests === undefined ? undefined : count.requests / requests,
      tokens: tokens === undefined ? undefined : count.tokens / tokens,
      cost: cost === undefined ? undefined : toUnits(count.cost) / toUnits(cost)
    }
    return Object.entries(ratios).flatMap(([unit, ratio]) => ratio === undefined ? [] : [{ window, unit, ratio }])
  })
