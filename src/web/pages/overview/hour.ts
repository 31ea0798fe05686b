/**
 * Sums over the last hour.
 */
import type { Reply } from "../../state/client.ts"

export type Hour = Reply<"admin-minutes", "list">
export type Minute = Hour["minutes"][number]

const sum = (minutes: ReadonlyArray<Minute>, of: "requests" | "ok" | "failed" | "refused" | "tokens"): number =>
  minutes.reduce((total, minute) => total + minute[of], 0)

const minuteLength = 60_000

/** Whether a minute was over before the gateway began to count: nothing is known of it. */
export const isUnknown = ({ at }: Pick<Minute, "at">, since: number): boolean => at + minuteLength <= since

/** The minutes whose rate counts as the current one: the last five full ones, or those there are; before the first full one, the running one. */
const recentMinutes = 5
const recentOf = (minutes: ReadonlyArray<Minute>, since: number): ReadonlyArray<Minute> => {
  const full = minutes.slice(0, -1).filter(({ at }) => at >= since).slice(-recentMinutes)
  return full.length > 0 ? full : minutes.slice(-1)
}

/** What all minutes together say, and the rate a minute of now. What callers are at fault for is `refused`, and not `failed`. */
export const totalsOf = ({ minutes, since }: Pick<Hour, "minutes" | "since">) => {
  const recent = recentOf(minutes, since)
  const refused = sum(minutes, "refused")
  return {
    requests: sum(minutes, "requests"),
    ok: sum(minutes, "ok"),
    failed: sum(minutes, "failed") - refused,
    refused,
    requestRate: Math.round((sum(recent, "requests") / Math.max(1, recent.length)) * 10) / 10
  }
}

/** A value as a share of the largest one, in percent: visible if it is not 0. */
export const heightOf = (value: number, most: number): number => value === 0 ? 0 : Math.max(3, (value / most) * 100)

/** The ends of the scale of latencies in milliseconds, and its lines; a slower minute extends it. */
const fastest = 10
const slowestAtLeast = 1_000
const lines = [100, 1_000, 10_000, 100_000] as const

/** A scale of latencies whose steps are powers of ten, so that one slow request does not flatten all others. */
export const latencyScale = (slowest: number) => {
  const top = Math.max(slowestAtLeast, slowest)
  /** The height of a time in percent. */
  const heightAt = (ms: number): number =>
    Math.max(0, Math.min(1, Math.log(Math.max(ms, fastest) / fastest) / Math.log(top / fastest))) * 100
  return { heightAt, lines: lines.filter((ms) => ms < top).map((ms) => ({ ms, height: heightAt(ms) })) }
}

/** The largest of some values; 0 of none. */
export const mostOf = (values: ReadonlyArray<number>): number => Math.max(0, ...values)
