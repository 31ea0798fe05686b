/**
 * What needs attention: upstreams that are left out, and keys near a limit.
 */
import type { Reply } from "./client.ts"
import { fullest, type UsedLimit } from "./limits.ts"
import { readOf } from "./reads.ts"
import type { UpstreamItem } from "./upstreams.ts"

/** Keys whose limits are looked at: one page of the list. */
export const keysRead = 500
export const keysAtom = readOf("admin-keys", "list", {
  query: { page: 1, page_size: keysRead },
  reactivityKeys: ["keys"]
})
/** How often the navigation reads what needs attention again, in milliseconds. */
export const problemsEvery = 15_000

type KeyItem = Reply<"admin-keys", "list">["items"][number]

/** A key from this share of a limit on needs attention. */
const nearLimit = 0.8

/** The keys near a limit, each with the limit of which it has used the largest share. */
export const nearLimits = (
  items: ReadonlyArray<KeyItem>
): ReadonlyArray<{ readonly item: KeyItem; readonly worst: UsedLimit }> =>
  items.flatMap((item) => {
    const worst = item.state === "active" ? fullest(item) : undefined
    return worst !== undefined && worst.share >= nearLimit ? [{ item, worst }] : []
  })

/** The upstreams that do not serve as they should. */
export const troubled = (items: ReadonlyArray<UpstreamItem>): ReadonlyArray<UpstreamItem> =>
  items.filter(({ accounts, findings, state }) =>
    state === "cooled" || (state === "ready" && (accounts.ready === 0 || findings.length > 0))
  )
