/**
 * How much of its limits a key has used.
 */
import type { KeyItem } from "./keys.ts"

const kinds = ["requests", "tokens"] as const

/** A limit of a key with what is used of it. */
export interface UsedLimit {
  readonly kind: (typeof kinds)[number]
  readonly window: KeyItem["usage"]["windows"][number]["window"]
  readonly used: number
  readonly limit: number
  /** From 0 on; 1 if all is used. */
  readonly share: number
  /** RFC 3339. */
  readonly resetsAt: string
}

export const limitsOf = (item: Pick<KeyItem, "usage">): ReadonlyArray<UsedLimit> =>
  item.usage.windows.flatMap((each) =>
    kinds.flatMap((kind) => {
      const spent = each[kind]
      if (spent === null) return []
      const { limit, used } = spent
      return [{
        kind,
        window: each.window,
        used,
        limit,
        share: limit === 0 ? 1 : used / limit,
        resetsAt: each.resets_at
      }]
    })
  )

/** The limit of which the largest share is used; `undefined` without limits. */
export const fullest = (item: Pick<KeyItem, "usage">): UsedLimit | undefined =>
  limitsOf(item).reduce<UsedLimit | undefined>(
    (worst, each) => worst === undefined || each.share > worst.share ? each : worst,
    undefined
  )
