/**
 * The prompts of a row of usage: the share that came from caches, as a bar of cached, written and fresh tokens.
 */
import { number, percent } from "../../parts/format.ts"
import { useTexts } from "../../state/texts.ts"
import { cacheOf, cacheParts, type Measures } from "./rows.ts"

interface Shown {
  readonly row: Pick<Measures, "cache_write_tokens" | "cached_tokens" | "prompt_tokens">
}

export const CacheShare = ({ row }: Shown) => {
  const t = useTexts().usage
  const tokens = cacheOf(row)
  return (
    <span title={cacheParts.map((part) => t.cacheParts(part, number(tokens[part]))).join("\n")}>
      {percent(row.cached_tokens, row.prompt_tokens)}
      <span class="parts" aria-hidden="true">
        {cacheParts.map((part) => <span key={part} style={{ flexGrow: tokens[part] }} />)}
      </span>
    </span>
  )
}

export const CacheCell = ({ row }: Shown) => (
  <td class="number">
    <CacheShare row={row} />
  </td>
)
