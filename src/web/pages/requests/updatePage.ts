/**
 * A page of the list of requests, and how events update it.
 */
import type { RequestItem } from "../../state/client.ts"
import type { RequestFilter, RequestPage } from "../../state/requests.ts"
import { fits } from "./filter.ts"

export const pageSize = 50

/** The most changes that wait behind a page that holds still. */
export const mostHeld = 200

/** A page as it is shown. */
export interface ShownPage extends RequestPage {
  /** Newer rows pushed rows off its end: its cursor would skip them. */
  readonly cut: boolean
  /** The newest state of requests that changed while the page held still. */
  readonly held: ReadonlyMap<string, RequestItem>
  /** There may be more requests that only the server can add: too many are held, or they may have the text that is searched. */
  readonly outdated: boolean
}

export const shownPage = (page: RequestPage): ShownPage => ({ ...page, cut: false, held: new Map(), outdated: false })

/**
 * The page after requests changed. Requests that no longer match the filter leave it. New requests join the newest page
 * alone, in order of time. A request of which only the server knows whether it matches is updated, and never added.
 */
export const updatePage = (
  page: ShownPage,
  items: ReadonlyArray<RequestItem>,
  filter: RequestFilter,
  isNewest: boolean
): ShownPage => {
  const changed = new Map(items.map((item) => [item.id, item]))
  const known = new Set(page.items.map((item) => item.id))
  const kept = page.items.flatMap((item) => {
    const now = changed.get(item.id)
    return now === undefined ? [item] : fits(filter, now) === false ? [] : [now]
  })
  if (!isNewest) return { ...page, items: kept }
  const fresh = [...changed.values()].filter((item) => !known.has(item.id))
  // Requests older than the whole page belong to a later page.
  const oldest = page.cut || page.next_cursor !== null ? page.items.at(-1)?.started_at : undefined
  const added = fresh.filter((item) =>
    fits(filter, item) === true && (oldest === undefined || item.started_at >= oldest)
  )
  const all = [...added, ...kept].sort((a, b) => b.started_at - a.started_at)
  return {
    ...page,
    items: all.slice(0, pageSize),
    cut: page.cut || all.length > pageSize,
    outdated: page.outdated || isUnsearched(filter, fresh)
  }
}

/** Whether requests may have the text that is searched. */
const isUnsearched = (filter: RequestFilter, fresh: ReadonlyArray<RequestItem>): boolean =>
  Boolean(filter.text) && fresh.some((item) => fits(filter, item) === undefined)

/**
 * The page after requests changed while it holds still: no row comes, goes or moves. Its rows are updated unless it `isPaused`.
 * Keeps at most `mostHeld` changes for `releasePage`.
 */
export const holdPage = (
  page: ShownPage,
  items: ReadonlyArray<RequestItem>,
  filter: RequestFilter,
  isNewest: boolean,
  isPaused: boolean
): ShownPage => {
  const known = new Set(page.items.map((item) => item.id))
  const held = new Map(page.held)
  for (const item of items) {
    if (known.has(item.id) || (isNewest && fits(filter, item) === true)) held.set(item.id, item)
    else held.delete(item.id)
  }
  const isFull = held.size > mostHeld
  return {
    ...page,
    items: isPaused ? page.items : page.items.map((item) => held.get(item.id) ?? item),
    held: isFull ? page.held : held,
    outdated: page.outdated || isFull ||
      (isNewest && isUnsearched(filter, items.filter((item) => !known.has(item.id))))
  }
}

/** The page with everything that was held. */
export const releasePage = (page: ShownPage, filter: RequestFilter, isNewest: boolean): ShownPage =>
  page.held.size === 0 ? page : updatePage({ ...page, held: new Map() }, [...page.held.values()], filter, isNewest)

/** The number of requests that are held and not on the page. */
export const freshOf = ({ held, items }: ShownPage): number => {
  const known = new Set(items.map((item) => item.id))
  return [...held.keys()].filter((id) => !known.has(id)).length
}
