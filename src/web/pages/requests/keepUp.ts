/**
 * A page of the list of requests, kept up with what changes.
 */
import type { RequestFilter, RequestPage } from "../../state/requests.ts"
import type { RequestItem } from "../../state/types.ts"

export const pageSize = 50

/** A page as it is shown. */
export interface ShownPage extends RequestPage {
  /** Rows were pushed off its end by newer ones: its cursor would lead past them. */
  readonly cut: boolean
}

/** Whether a request is one of those that the list is narrowed to. */
const fits = (filter: RequestFilter, item: RequestItem): boolean => {
  const same = (wanted: string, ...found: ReadonlyArray<string | null>) =>
    wanted.trim() === "" || found.includes(wanted.trim())
  const status = filter.status.trim()
  const statusFits = status === "" || item.outcome === status || String(item.status) === status ||
    (/^[45]xx$/.test(status) && item.status !== null && String(item.status).startsWith(status[0]!))
  return statusFits && same(filter.style, item.style) && same(filter.model, item.model, item.native_model) &&
    same(filter.key, item.key) && same(filter.account, item.account)
}

/**
 * The page after requests changed: what it is no longer narrowed to has left it, and what is new stands on the newest page
 * alone, in the order of time.
 */
export const keepUp = (
  page: ShownPage,
  items: ReadonlyArray<RequestItem>,
  filter: RequestFilter,
  isNewest: boolean
): ShownPage => {
  const changed = new Map(items.map((item) => [item.id, item]))
  const known = new Set(page.items.map((item) => item.id))
  const kept = page.items.flatMap((item) => {
    const now = changed.get(item.id)
    return now === undefined ? [item] : fits(filter, now) ? [now] : []
  })
  if (!isNewest) return { ...page, items: kept }
  // What is older than the whole page stands on those behind it.
  const oldest = page.cut || page.next_cursor !== null ? page.items.at(-1)?.started_at : undefined
  const added = items.filter((item) =>
    !known.has(item.id) && fits(filter, item) && (oldest === undefined || item.started_at >= oldest)
  )
  const all = [...added, ...kept].sort((a, b) => b.started_at - a.started_at)
  return { ...page, items: all.slice(0, pageSize), cut: page.cut || all.length > pageSize }
}
