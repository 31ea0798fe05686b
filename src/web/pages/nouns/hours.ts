/**
 * The hours of a day of usage.
 */
import type { Reply } from "../../state/client.ts"

type Usage = Reply<"admin-usage", "query">

export const hourLength = 3_600_000
export const dayLength = 24 * hourLength

/** The end of the running hour. */
export const endOfHour = (now: number): number => Math.ceil(now / hourLength) * hourLength

/** A time as the usage API takes it. */
export const isoHour = (time: number): string => new Date(time).toISOString().replace(".000", "")

/** The 24 hours up to `end`, each with its requests, its failures and how long 95 of 100 took; an hour without a row has none. */
export const hoursOf = (rows: Usage["rows"], end: number) => {
  const byHour = new Map(rows.map((row) => [Date.parse(row.hour ?? ""), row]))
  return Array.from({ length: 24 }, (_, index) => {
    const at = end - (24 - index) * hourLength
    const row = byHour.get(at)
    return { at, all: row?.requests ?? 0, failed: row?.failed ?? 0, p95: row?.duration_p95_ms ?? null }
  })
}
