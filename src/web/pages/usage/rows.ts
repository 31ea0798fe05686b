/**
 * Rows of usage from the admin API, and the chart's series.
 */
import type { Reply } from "../../state/client.ts"

export type Usage = Reply<"admin-usage", "query">

export type UsageRow = Usage["rows"][number]
export type Measures = Usage["totals"]

const lengths = { hour: 3600, day: 24 * 3600 } as const

/** Parallel lists: Unix time in seconds, requests, tokens. */
type Series = [times: Array<number>, requests: Array<number>, tokens: Array<number>]

/**
 * Requests and tokens of every requested hour or day. A time without a row has zeros. A truncated reply ends at its last row,
 * because later values are unknown.
 */
export const seriesOf = (
  { from, rows, to, truncated }: Pick<Usage, "from" | "to" | "rows" | "truncated">,
  group: "hour" | "day"
): Series => {
  const length = lengths[group]
  const startOf = (time: string) => Math.floor(Date.parse(time) / 1000 / length) * length
  const byTime = new Map(rows.map((row) => [startOf((group === "hour" ? row.hour : row.day) ?? ""), row]))
  const end = truncated ? Math.max(...byTime.keys()) + length : Date.parse(to) / 1000
  const series: Series = [[], [], []]
  for (let time = startOf(from); time < end; time += length) {
    const row = byTime.get(time)
    series[0].push(time)
    series[1].push(row?.requests ?? 0)
    series[2].push(row?.total_tokens ?? 0)
  }
  return series
}
