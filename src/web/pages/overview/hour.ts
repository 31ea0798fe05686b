/**
 * Sums over the last hour.
 */
import type { Reply } from "../../state/client.ts"

export type Hour = Reply<"admin-minutes", "list">
export type Minute = Hour["minutes"][number]

type Counted = "requests" | "ok" | "failed" | "refused" | "tokens" | "cost"

const sum = (minutes: ReadonlyArray<Minute>, of: Counted): number =>
  minutes.reduce((total, minute) => total + Number(minute[of]), 0)

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
    tokens: sum(minutes, "tokens"),
    cost: sum(minutes, "cost"),
    requestRate: Math.round((sum(recent, "requests") / Math.max(1, recent.length)) * 10) / 10
  }
}

/** A value as a share of the largest one, in percent: visible if it is not 0. */
export const heightOf = (value: number, most: number): number => value === 0 ? 0 : Math.max(3, (value / most) * 100)

/** The scale of latencies ends at so many times the usual one. */
const timesUsual = 3

/**
 * A linear scale of latencies from 0 to three times the usual one, which is the median of the minutes: a latency that doubles is twice as
 * high. What is above it is cut. `undefined` without any latency.
 */
export const latencyScale = (latencies: ReadonlyArray<number | null>) => {
  const known = latencies.filter((ms) => ms !== null).sort((a, b) => a - b)
  const usual = known[Math.floor((known.length - 1) / 2)]
  if (usual === undefined) return undefined
  const top = Math.max(1, usual * timesUsual)
  return {
    usual,
    top,
    /** The height of a time in percent. */
    heightAt: (ms: number): number => Math.min(1, ms / top) * 100
  }
}

/** Minutes at each side of a number above one in which no other one has room. */
const roomOfNumber = 5

/** The columns whose latency is above the scale and that have a number: of those that stand together, the slowest one. */
export const numbered = (
  latencies: ReadonlyArray<number | null>,
  top: number,
  room = roomOfNumber
): ReadonlyArray<number> => {
  const cut = latencies.flatMap((ms, index) => ms !== null && ms > top ? [{ index, ms }] : [])
  const shown: Array<number> = []
  for (const { index } of cut.toSorted((a, b) => b.ms - a.ms)) {
    if (shown.every((each) => Math.abs(each - index) > room)) shown.push(index)
  }
  return shown
}

/** The share of its requests that failed, without those that callers are at fault for, from 0 to 1. */
export const failedShare = ({ failed, ok, refused }: Minute): number => {
  const bad = failed - refused
  return bad === 0 ? 0 : bad / (ok + bad)
}

/** How a value has changed to the hour before, as a share of that; `undefined` where the hour before is not known whole, or had none. */
export const changeOf = ({ minutes, since }: Pick<Hour, "minutes" | "since">, now: number, before: number) => {
  const start = (minutes[0]?.at ?? 0) - minutes.length * minuteLength
  return since > start || before === 0 ? undefined : (now - before) / before
}

/** The largest of some values; 0 of none. */
export const mostOf = (values: ReadonlyArray<number>): number => Math.max(0, ...values)
