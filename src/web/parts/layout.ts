/**
 * How much room the window has.
 */
import { useEffect, useState } from "preact/hooks"

/** Whether a media query holds. */
export const useMedia = (query: string): boolean => {
  const [holds, setHolds] = useState(matchMedia(query).matches)
  useEffect(() => {
    const media = matchMedia(query)
    const changed = () => setHolds(media.matches)
    changed()
    media.addEventListener("change", changed)
    return () => media.removeEventListener("change", changed)
  }, [query])
  return holds
}

/** Windows that have room for every column with its whole names. */
export const roomy = "(min-width: 1400px)"

/** `wide`: every column. `lines`: columns of rank 3 and 4 stand below the name. `cards`: a row is a card of two lines. */
export type Layout = "wide" | "lines" | "cards"

/** The layout of lists in the window, and of one that has room for every column from so many pixels on. */
export const useLayout = (wideFrom = 1100): Layout => {
  const isNarrow = useMedia(`(max-width: ${wideFrom - 1}px)`)
  const isSmall = useMedia("(max-width: 699px)")
  return isSmall ? "cards" : isNarrow ? "lines" : "wide"
}
