/**
 * How much of its limits a key has used.
 */
import type { Reply } from "./client.ts"

type KeyItem = Reply<"admin-keys", "list">["items"][number]

const kinds = ["requests", "tokens", "cost"] as const

/** A limit of a key with what is used of it; amounts of money are decimal numbers. */
export interface UsedLimit {
  readonly kind: (typeof kinds)[number]
  readonly window: KeyItem["usage"]["windows"][number]["window"]
  readonly used: number | string
  readonly limit: number | string
  /** From 0 on; 1 if all is used. */
  readonly share: number
}

export const limitsOf = (item: Pick<KeyItem, "usage">): ReadonlyArray<UsedLimit> =>
  item.usage.windows.flatMap((each) =>
    kinds.flatMap((kind) => {
      const spent = each[kind]
      if (spent === null || spent === undefined) return []
      const { limit, used } = spent
      const share = Number(limit) === 0 ? 1 : Number(used) / Number(limit)
      return [{ kind, window: each.window, used, limit, share }]
    })
  )

/** The limit of which the largest share is used; `undefined` without limits. */
export const fullest = (item: Pick<KeyItem, "usage">): UsedLimit | undefined =>
  limitsOf(item).reduce<UsedLimit | undefined>(
    (worst, each) => worst === undefined || each.share > worst.share ? each : worst,
    undefined
  )
