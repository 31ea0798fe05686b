/**
 * Leads through the pages of a list.
 */
import { useEffect } from "preact/hooks"
import { useTexts } from "../state/preferences.ts"

/** Pages count from 1. Where the list became shorter than the page that is shown, it leads back to its last one. */
export const Pager = ({ onPage, page, pages, shown, total }: {
  /** The page that was asked for, and the one that is there by now. */
  readonly page: number
  readonly shown: number
  readonly pages: number
  /** How much all pages have, in words. */
  readonly total: string
  readonly onPage: (page: number) => void
}) => {
  const t = useTexts().common
  const isPast = shown > pages
  useEffect(() => {
    if (isPast) onPage(pages)
  }, [isPast, pages])
  return (
    <div class="pager">
      <button type="button" disabled={page <= 1} onClick={() => onPage(page - 1)}>{t.previous}</button>
      <span>{t.page(shown, pages)} · {total}</span>
      <button type="button" disabled={page >= pages} onClick={() => onPage(page + 1)}>{t.next}</button>
    </div>
  )
}
