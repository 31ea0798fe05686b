/**
 * How much is used of limits: of a key's, of budgets.
 */
import type { Reply } from "./client.ts"

type KeyItem = Reply<"admin-keys", "list">["items"][number]

const kinds = ["requests", "tokens", "cost"] as const

/** A window with its limits and what is used of them. */
export type LimitWindow = Pick<KeyItem["usage"]["windows"][number], (typeof kinds)[number] | "window" | "resets_at">

/** A limit of a window with what is used of it; amounts of money are decimal numbers. */
export interface UsedLimit {
  readonly kind: (typeof kinds)[number]
  readonly window: LimitWindow["window"]
  /** RFC 3339. */
  readonly resets_at: string
  readonly used: number | string
  readonly limit: number | string
  /** From 0 on; 1 if all is used. */
  readonly share: number
}

/** The limits of windows. */
export const usedOf = (windows: ReadonlyArray<LimitWindow>): ReadonlyArray<UsedLimit> =>
  windows.flatMap((each) =>
    kinds.flatMap((kind) => {
      const spent = each[kind]
      if (spent === null || spent === undefined) return []
      const { limit, used } = spent
      const share = Number(limit) === 0 ? 1 : Number(used) / Number(limit)
      return [{ kind, window: each.window, resets_at: each.resets_at, used, limit, share }]
    })
  )

/** The limits of a key. */
export const limitsOf = (item: Pick<KeyItem, "usage">): ReadonlyArray<UsedLimit> => usedOf(item.usage.windows)

/** The limit of which the largest share is used; `undefined` without limits. */
export const fullest = (item: Pick<KeyItem, "usage">): UsedLimit | undefined =>
  limitsOf(item).reduce<UsedLimit | undefined>(
    (worst, each) => worst === undefined || each.share > worst.share ? each : worst,
    undefined
  )
