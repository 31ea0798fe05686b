/**
 * Pages of lists.
 */

/** A number of a query as a whole number from 1 to `most`; absent or empty: `fallback`. */
export const clamp = (value: number | "" | undefined, fallback: number, most: number): number =>
  value === undefined || value === "" ? fallback : Math.min(most, Math.max(1, Math.trunc(value)))

/** The page fields of a query. */
export interface PageQuery {
  readonly page?: number | "" | undefined
  readonly page_size?: number | "" | undefined
  readonly q?: string | undefined
}

/** The text that a list is filtered by, in lower case; empty: all items. */
export const searchText = ({ q = "" }: PageQuery): string => q.trim().toLowerCase()

/** A page of a list, with the page fields of the reply; `total` counts the items of all pages. */
export const pageOf = <A>(all: ReadonlyArray<A>, query: PageQuery, sizes: { fallback: number; most: number }) => {
  const page = clamp(query.page, 1, Number.MAX_SAFE_INTEGER)
  const page_size = clamp(query.page_size, sizes.fallback, sizes.most)
  return {
    items: all.slice((page - 1) * page_size, page * page_size),
    total: all.length,
    page,
    page_size,
    total_pages: Math.max(1, Math.ceil(all.length / page_size))
  }
}
