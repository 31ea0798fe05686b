/**
 * The usage of today, in the chosen time zone.
 */
import { useMemo } from "preact/hooks"
import { dayIn, dayStart } from "../../parts/format.ts"
import { Admin } from "../../state/client.ts"
import { isoHour } from "../nouns/hours.ts"

/** How often it is read again, in milliseconds. */
export const readTodayEvery = 30_000

/** The most keys or models that are looked at. */
const mostRows = 1_000

/** The usage of today by keys or models, the one with the most tokens first. */
export const useToday = (by: "key" | "model") => {
  const day = dayIn(Date.now())
  return useMemo(
    () => Admin.query("admin-usage", "query", { query: { by, from: isoHour(dayStart(day)), limit: String(mostRows) } }),
    [by, day]
  )
}
