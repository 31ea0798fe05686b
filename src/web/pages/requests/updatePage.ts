/**
 * A page of the list of requests, and how events update it.
 */
import type { RequestItem } from "../../state/client.ts"
import type { RequestFilter, RequestPage } from "../../state/requests.ts"

export const pageSize = 50

/** A page as it is shown. */
export interface ShownPage extends RequestPage {
  /** Newer rows pushed rows off its end: its cursor would skip them. */
  readonly cut: boolean
}

/** Whether a value matches as the server matches it: a part in any case, or the whole value in double quotes. */
const isPart = (wanted: string, ...found: ReadonlyArray<string | null>): boolean => {
  if (wanted === "") return true
  const exact = /^"([^]*)"$/.exec(wanted)?.[1]
  const part = wanted.toLowerCase()
  return found.some((value) => exact === undefined ? value?.toLowerCase().includes(part) : value === exact)
}

/** Whether a request matches the filter. */
const matches = ({ account, key, model, status, style }: RequestFilter, item: RequestItem): boolean => {
  const isOneOf = (wanted: string, ...found: ReadonlyArray<string | null>) => wanted === "" || found.includes(wanted)
  const code = item.status === null ? null : String(item.status)
  const codeClass = code === null ? null : `${code[0]}xx`
  return isOneOf(status, item.outcome, code, codeClass) && isOneOf(style, item.style) &&
    isPart(model, item.model, item.native_model) && isPart(key, item.key, item.key_name) &&
    isPart(account, item.account)
}

/**
 * The page after requests changed. Requests that no longer match the filter leave it. New requests join the newest page
 * alone, in order of time.
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
    return now === undefined ? [item] : matches(filter, now) ? [now] : []
  })
  if (!isNewest) return { ...page, items: kept }
  // Requests older than the whole page belong to a later page.
  const oldest = page.cut || page.next_cursor !== null ? page.items.at(-1)?.started_at : undefined
  const added = items.filter((item) =>
    !known.has(item.id) && matches(filter, item) && (oldest === undefined || item.started_at >= oldest)
  )
  const all = [...added, ...kept].sort((a, b) => b.started_at - a.started_at)
  return { ...page, items: all.slice(0, pageSize), cut: page.cut || all.length > pageSize }
}
