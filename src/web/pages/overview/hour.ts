/**
 * Sums over the last hour.
 */
import type { Reply } from "../../state/client.ts"

export type Hour = Reply<"admin-minutes", "list">
export type Minute = Hour["minutes"][number]

const sum = (minutes: ReadonlyArray<Minute>, of: "requests" | "ok" | "failed" | "tokens"): number =>
  minutes.reduce((total, minute) => total + minute[of], 0)

/** What all minutes together say. The rates are per minute of the whole hour. */
export const totalsOf = (minutes: ReadonlyArray<Minute>) => {
  const requests = sum(minutes, "requests")
  const tokens = sum(minutes, "tokens")
  const length = Math.max(1, minutes.length)
  return {
    requests,
    ok: sum(minutes, "ok"),
    failed: sum(minutes, "failed"),
    tokens,
    requestRate: Math.round((requests / length) * 10) / 10,
    tokenRate: Math.round(tokens / length)
  }
}

/** A value as a share of the largest one, in percent: visible if it is not 0. */
export const heightOf = (value: number, most: number): number => value === 0 ? 0 : Math.max(3, (value / most) * 100)

/** The largest of some values; 0 of none. */
export const mostOf = (values: ReadonlyArray<number>): number => Math.max(0, ...values)
