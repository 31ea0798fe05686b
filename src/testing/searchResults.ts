/** Results of a search that never happened. */
import type { SearchResult } from "./ReplyBuilder.ts"

/** `count` results about `query`, cited by 1, 2, …; the addresses are reserved for examples. */
export const searchResults = (query: string, count: number): ReadonlyArray<SearchResult> =>
  Array.from({ length: count }, (_, i) => ({
    url: `https://example.com/${i + 1}`,
    title: `Result ${i + 1}`,
    snippet: `What page ${i + 1} says about ${query}.`,
    cite_index: i + 1
  }))
