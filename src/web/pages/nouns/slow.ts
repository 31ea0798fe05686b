/**
 * Since when requests are slow, and where their time goes.
 */
import type { Reply } from "../../state/client.ts"

type Row = Pick<
  Reply<"admin-usage", "query">["rows"][number],
  "hour" | "requests" | "duration_ms" | "duration_p95_ms" | "queue_ms" | "upstream_ms"
>

/** The parts of a request's time: waiting for a slot, until the first event, and the rest of the reply. */
export const phases = ["wait", "first", "stream"] as const
export type Phase = (typeof phases)[number]

/** A time of slow requests up to now. */
interface Slowness {
  /** The first slow hour, in Unix milliseconds. */
  readonly since: number
  /** What 95 of 100 requests kept within: the most of a slow hour, and the usual of others. Milliseconds. */
  readonly p95: number
  readonly usual: number
  /** What has become longer most, and its share of the time of the slow requests, from 0 to 1. */
  readonly phase: Phase
  readonly share: number
}

/** An hour is slow from so many times the usual on, and so many milliseconds. */
const factor = 2
const leastMore = 500

const sumOf = (rows: ReadonlyArray<Row>, of: (row: Row) => number): number =>
  rows.reduce((sum, row) => sum + of(row), 0)

const timeIn = (phase: Phase) => ({ duration_ms, queue_ms, upstream_ms }: Row): number =>
  phase === "wait" ? queue_ms : phase === "first" ? upstream_ms : Math.max(0, duration_ms - queue_ms - upstream_ms)

/**
 * The slow hours at the end of some, whose times are known; `undefined` where the last one is as fast as others. The usual is what the
 * fastest quarter of the hours keeps within.
 */
export const slownessOf = (rows: ReadonlyArray<Row>): Slowness | undefined => {
  const hours = rows
    .flatMap((row) =>
      row.duration_p95_ms === null ? [] : [{ at: Date.parse(row.hour ?? ""), p95: row.duration_p95_ms, row }]
    )
    .toSorted((a, b) => a.at - b.at)
  const sorted = hours.map(({ p95 }) => p95).toSorted((a, b) => a - b)
  const usual = sorted[Math.floor((sorted.length - 1) / 4)]
  if (usual === undefined) return undefined
  const last = hours.findLastIndex(({ p95 }) => p95 < usual * factor || p95 < usual + leastMore)
  const slow = hours.slice(last + 1)
  const [first] = slow
  if (first === undefined) return undefined
  const [now, before] = [slow, hours.slice(0, last + 1)].map((part) => part.map(({ row }) => row)) as [
    Array<Row>,
    Array<Row>
  ]
  const mean = (some: ReadonlyArray<Row>, phase: Phase) =>
    sumOf(some, timeIn(phase)) / Math.max(1, sumOf(some, ({ requests }) => requests))
  const grown = phases.map((phase) => ({ phase, by: mean(now, phase) - mean(before, phase) }))
    .toSorted((a, b) => b.by - a.by)
  const { phase } = grown[0]!
  const all = sumOf(now, ({ duration_ms }) => duration_ms)
  return {
    since: first.at,
    p95: Math.max(...slow.map(({ p95 }) => p95)),
    usual,
    phase,
    share: all === 0 ? 0 : sumOf(now, timeIn(phase)) / all
  }
}
