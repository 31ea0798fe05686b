/**
 * The usage of today, in the chosen time zone.
 */
import { useMemo } from "preact/hooks"
import { dayIn, dayStart } from "../../parts/format.ts"
import { readOf } from "../../state/reads.ts"
import { isoHour } from "../nouns/hours.ts"

/** How often it is read again, in milliseconds. */
export const readTodayEvery = 30_000

/** The keys and models that are shown. */
export const mostShown = 3

/** The usage of today, and the keys or models that cost most, or have the most tokens where none has a price. */
export const useToday = (by: "key" | "model") => {
  const day = dayIn(Date.now())
  return useMemo(
    () =>
      readOf("admin-usage", "query", {
        query: { by, from: isoHour(dayStart(day)), sort: "cost", limit: String(mostShown) }
      }),
    [by, day]
  )
}
