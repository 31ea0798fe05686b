/**
 * Rows of usage from the admin API, and the chart's stacked series.
 */
import type { Reply } from "../../state/client.ts"

export type Usage = Reply<"admin-usage", "query">

export type UsageRow = Usage["rows"][number]
export type Measures = Usage["totals"]

export type Grouping = Usage["by"][number]
/** What rows are named by, besides time. */
export type Dimension = Exclude<Grouping, "hour" | "day">

/** The dimensions of the page. */
export const dimensions = ["key", "model", "account", "style", "upstream", "target", "app", "label"] as const

/** What the chart's bars show. */
const barNames = ["requests", "failed", "tokens", "cache", "cost"] as const
export type BarName = (typeof barNames)[number]

/** What the chart shows as lines: percentiles, which do not add up. */
export const lineNames = [
  "first_event_p50_ms",
  "first_event_p95_ms",
  "duration_p95_ms",
  "queue_p95_ms",
  "tokens_per_second_p50"
] as const
export type LineName = (typeof lineNames)[number]

/** What the chart shows. */
export const measureNames = [...barNames, ...lineNames] as const
export type MeasureName = (typeof measureNames)[number]

export const isLine = (name: MeasureName): name is LineName => lineNames.some((each) => each === name)

/** What the table can be sorted by. */
export const sortNames = [
  "requests",
  "failed",
  "left",
  "total_tokens",
  "prompt_tokens",
  "completion_tokens",
  "cost",
  ...lineNames,
  "attempts",
  "prompt_cache_hit_rate"
] as const
export type SortName = (typeof sortNames)[number]

/** What the table is sorted by while the chart shows a measure. */
export const sortOf = (name: MeasureName): SortName =>
  name === "tokens" ? "total_tokens" : name === "cache" ? "prompt_tokens" : name

/** The value of a row in the chart. Costs lose their exactness there: the table has it. */
export const measureOf = (row: Measures, name: BarName): number => {
  switch (name) {
    case "tokens":
      return row.total_tokens
    case "cache":
      return row.prompt_tokens
    case "cost":
      return Number(row.cost)
    default:
      return row[name]
  }
}

/** What prompts consist of: tokens that a cache had, tokens that were written to one, and all others. */
export const cacheParts = ["cached", "written", "fresh"] as const
export type CachePart = (typeof cacheParts)[number]

/** The tokens of the prompts of a row. */
export const cacheOf = (
  { cache_write_tokens: written, cached_tokens: cached, prompt_tokens }: Pick<
    Measures,
    "cache_write_tokens" | "cached_tokens" | "prompt_tokens"
  >
): Readonly<Record<CachePart, number>> => ({ cached, written, fresh: Math.max(0, prompt_tokens - cached - written) })

const lengths = { hour: 3600, day: 24 * 3600 } as const

/** The value of a row in a dimension, as the API's filters take it. */
export const valueOf = (row: UsageRow, by: Dimension): string => row[by] ?? ""

export interface Part {
  /** `undefined` for everything that is not among the largest parts. */
  readonly value: string | undefined
  /** A row of the part, for its name. */
  readonly row: UsageRow | undefined
  /** One value for each time; `null` where a percentile is unknown. */
  readonly values: ReadonlyArray<number | null>
  /** The value of the whole time; `undefined` where it is unknown. */
  readonly total: number | undefined
}

/** Bars over time, each of stacked parts; or lines, each a part. */
export interface Stack {
  /** Unix seconds of the starts of hours or days. */
  readonly times: ReadonlyArray<number>
  readonly parts: ReadonlyArray<Part>
}

/** Parts of bars with their sums. */
const withSums = (
  parts: ReadonlyArray<Omit<Part, "total" | "values"> & { readonly values: ReadonlyArray<number> }>
): ReadonlyArray<Part> => parts.map((part) => ({ ...part, total: part.values.reduce((sum, value) => sum + value, 0) }))

/** The most parts of a bar; the rest is one part more. */
const mostParts = 7

export type Series = Pick<Usage, "from" | "to" | "rows" | "truncated">

/** The day of a time, as its first millisecond in UTC. */
type DayOf = (time: number) => number

/** Every requested hour or day, and the place of a row among them. A truncated reply ends at its last row, because later values are unknown. */
const timesOf = ({ from, rows, to, truncated }: Series, unit: "hour" | "day", dayOf: DayOf) => {
  const length = lengths[unit]
  const floor = (time: number) => Math.floor(time / 1000 / length) * length
  const startOf = (time: string) => floor(Date.parse(time))
  const bounds = unit === "day"
    ? [floor(dayOf(Date.parse(from))), floor(dayOf(Date.parse(to) - 1)) + length]
    : [startOf(from), Date.parse(to) / 1000]
  const timeOf = (row: UsageRow) => startOf((unit === "hour" ? row.hour : row.day) ?? "")
  const end = truncated ? Math.max(0, ...rows.map(timeOf)) + length : bounds[1]!
  const times: Array<number> = []
  for (let time = bounds[0]!; time < end; time += length) times.push(time)
  const places = new Map(times.map((time, place) => [time, place]))
  return { times, placeOf: (row: UsageRow) => places.get(timeOf(row)) }
}

/**
 * The bars of every requested hour or day; a time without a row has zeros. With `split`, a bar has a part for each of the 7 values
 * with the largest sums, largest first, and one for the rest.
 */
export const stackOf = (
  reply: Series,
  unit: "hour" | "day",
  split: Dimension | undefined,
  measure: BarName,
  dayOf: DayOf = (time) => time
): Stack => {
  const { rows } = reply
  const { placeOf, times } = timesOf(reply, unit, dayOf)
  const sums = new Map<string, { readonly row: UsageRow; sum: number }>()
  for (const row of rows) {
    const value = split === undefined ? "" : valueOf(row, split)
    const known = sums.get(value)
    if (known === undefined) sums.set(value, { row, sum: measureOf(row, measure) })
    else known.sum += measureOf(row, measure)
  }
  const largest = [...sums].toSorted(([a, x], [b, y]) => y.sum - x.sum || (a < b ? -1 : 1)).slice(0, mostParts)
  const parts = largest.map(([value, { row }]) => ({ value, row, values: times.map(() => 0) }))
  const others = { value: undefined, row: undefined, values: times.map(() => 0) }
  const partOf = new Map<string, { readonly values: Array<number> }>(parts.map((part) => [part.value, part]))
  for (const row of rows) {
    const place = placeOf(row)
    const part = partOf.get(split === undefined ? "" : valueOf(row, split)) ?? others
    if (place !== undefined) part.values[place]! += measureOf(row, measure)
  }
  return { times, parts: withSums(sums.size > mostParts ? [...parts, others] : parts) }
}

/** The most lines of a chart. */
const mostLines = 5

/**
 * The percentiles of every requested hour or day, as one line for each of the 5 values of `split` with the most requests; the largest line
 * first. `totalOf` has the percentile of the whole time, where it is known.
 */
export const linesOf = (
  reply: Series,
  unit: "hour" | "day",
  split: Dimension | undefined,
  measure: LineName,
  totalOf: (value: string) => number | undefined,
  dayOf: DayOf = (time) => time
): Stack => {
  const { placeOf, times } = timesOf(reply, unit, dayOf)
  const found = Map.groupBy(reply.rows, (row) => split === undefined ? "" : valueOf(row, split))
  const requestsOf = (rows: ReadonlyArray<UsageRow>) => rows.reduce((sum, { requests }) => sum + requests, 0)
  const parts = [...found]
    .toSorted(([a, x], [b, y]) => requestsOf(y) - requestsOf(x) || (a < b ? -1 : 1))
    .slice(0, mostLines)
    .map(([value, rows]): Part => {
      const values = times.map((): number | null => null)
      for (const row of rows) {
        const place = placeOf(row)
        if (place !== undefined) values[place] = row[measure]
      }
      return { value, row: rows[0], values, total: totalOf(value) }
    })
  return { times, parts: parts.toSorted((a, b) => (b.total ?? 0) - (a.total ?? 0)) }
}

/** The bars of every requested hour or day, whose parts are tokens of prompts. */
export const cacheStackOf = (reply: Series, unit: "hour" | "day", dayOf: DayOf = (time) => time): Stack => {
  const { placeOf, times } = timesOf(reply, unit, dayOf)
  const parts = cacheParts.map((value) => ({ value, row: undefined, values: times.map(() => 0) }))
  for (const row of reply.rows) {
    const place = placeOf(row)
    const tokens = cacheOf(row)
    if (place !== undefined) { for (const { value, values } of parts) values[place]! += tokens[value] }
  }
  return { times, parts: withSums(parts) }
}

/** The tops of stacked parts, the whole bar first: each is drawn over the one before. */
export const topsOf = ({ parts, times }: Stack): ReadonlyArray<ReadonlyArray<number>> => {
  const below = times.map(() => 0)
  const tops = parts.map(({ values }) => values.map((value, place) => (below[place]! += value ?? 0)))
  return tops.toReversed()
}

/** Errors of all rows by code, most frequent first. */
export const errorsOf = ({ totals }: Usage): ReadonlyArray<readonly [code: string, count: number]> =>
  Object.entries(totals.errors).toSorted(([a, x], [b, y]) => y - x || (a < b ? -1 : 1))
