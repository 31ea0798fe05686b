/**
 * Queries of usage, and the report made from buckets: grouped, sorted and limited, in slices.
 */
import { type Cooperative, mapCooperatively, Slice, sliceItems } from "../domain/stream/cooperative.ts"
import { none } from "../domain/usageNames.ts"
import type { Bucket } from "./Batch.ts"
import {
  addSums,
  type DimensionName,
  dimensionNames,
  type Dimensions,
  dimensionsBy,
  historyNames,
  sessionNames,
  type Sums,
  zero
} from "./UsageEntry.ts"
import { dayOf } from "./windows.ts"

/** What rows can be grouped by. */
export const groupings = [
  "key",
  "model",
  "account",
  "style",
  "hour",
  "day",
  "upstream",
  "target",
  "app",
  "session",
  "agent",
  "parent",
  "label"
] as const

/** What usage can be grouped by. */
export type Grouping = (typeof groupings)[number]

/** The labels of keys, as they are when a query is asked: usage is stored by key. */
export interface Labels {
  /** The label of a key by its id; `none` without one. */
  readonly of: (key: string) => string
  /** Restricts buckets to keys with these labels. */
  readonly only: ReadonlySet<string> | undefined
}

/** A query of usage. Times are milliseconds of Unix time at full hours. */
export interface UsageQuery {
  readonly from: number
  /** Exclusive. */
  readonly to: number
  readonly by: ReadonlyArray<Grouping>
  /** Restricts buckets to these values; a dimension without a set is not restricted. */
  readonly only: { readonly [Name in DimensionName]?: ReadonlySet<string> | undefined }
  /** The labels of keys; without them no key has one. */
  readonly labels?: Labels | undefined
  /** The maximum number of rows. */
  readonly limit: number
  /** The day of an hour, as the first millisecond of the same day in UTC; by default days are in UTC. */
  readonly dayOf?: ((hour: number) => number) | undefined
  /** The order of the rows; by default that of `UsageReport`. */
  readonly sort?: RowOrder | undefined
}

/** A value of rows that they are sorted by; `null` is last in either order, and equal ones are in the default order. */
export interface RowOrder {
  readonly valueOf: (sums: Sums) => number | bigint | null
  readonly order: "asc" | "desc"
}

/** The dimensions of the table that answers a query: that of sessions if the query names a session or an agent, else the history. */
export const namesFor = ({ by, only }: Pick<UsageQuery, "by" | "only">): ReadonlyArray<DimensionName> =>
  (["session", "agent", "parent"] as const).some((name) => by.includes(name) || only[name] !== undefined)
    ? sessionNames
    : historyNames

/** Whether the usage of sessions answers a query. */
export const asksSessions = (query: UsageQuery): boolean => namesFor(query) === sessionNames

/** Whether a store separates the values of a dimension in what it reads for a query: labels are made from keys. */
export const reads = ({ by, labels }: Pick<UsageQuery, "by" | "labels">, name: DimensionName): boolean =>
  by.includes(name) || (name === "key" && (by.includes("label") || labels?.only !== undefined))

/** The sums of one group of buckets. A dimension that rows are not grouped by is empty or 0. */
export interface UsageRow extends Dimensions {
  /** The label of the keys; empty if rows are not grouped by labels. */
  readonly label: string
  /** The first millisecond of the hour, or of the day if rows are grouped by days but not by hours. */
  readonly time: number
  readonly sums: Sums
}

/** The answer to a query of usage. */
export interface UsageReport {
  /** By time, then by falling tokens, then by names, unless the query has another order. */
  readonly rows: ReadonlyArray<UsageRow>
  /** Sums over all rows, also those beyond the limit. */
  readonly totals: Sums
  readonly truncated: boolean
}

type Times = Pick<UsageQuery, "by" | "dayOf">

/** The time that a row has for an hour: the hour, its day, or 0. */
const timeOf = ({ by, dayOf: dayOfHour = dayOf }: Times, hour: number): number =>
  by.includes("hour") ? hour : by.includes("day") ? dayOfHour(hour) : 0

/** The unit by which a store may sum what it reads for a query: days of a zone are made of hours. */
export const unitRead = ({ by, dayOf: dayOfHour }: Times): "hour" | "day" | undefined =>
  by.includes("hour") ? "hour" : by.includes("day") ? (dayOfHour === undefined ? "day" : "hour") : undefined

/**
 * The dimension by which sums of days answer a query: days are summed by one dimension each. `undefined` if the query needs hours or
 * several dimensions.
 */
export const dayDimension = (query: UsageQuery): DimensionName | undefined => {
  if (asksSessions(query) || unitRead(query) === "hour") return undefined
  const involved = historyNames.filter((name) => reads(query, name) || query.only[name] !== undefined)
  return involved.length > 1 ? undefined : involved[0] ?? "style"
}

/** The time under which a store sums a bucket for a query. */
export const timeRead = (query: Times, hour: number): number => {
  const unit = unitRead(query)
  return unit === "hour" ? hour : unit === "day" ? dayOf(hour) : 0
}

/** Some buckets of the history. */
export interface Piece {
  readonly buckets: ReadonlyArray<Bucket>
  /** The number of buckets that were read for them. */
  readonly looked: number
}

/** Whether a bucket matches a query. */
export const matches = ({ from, only, to }: UsageQuery, bucket: Bucket): boolean =>
  bucket.hour >= from && bucket.hour < to && dimensionNames.every((name) => only[name]?.has(bucket[name]) !== false)

const compareText = (a: string, b: string): number => a < b ? -1 : a > b ? 1 : 0

const totalTokens = 9

const compareRows = (a: UsageRow, b: UsageRow): number => {
  if (a.time !== b.time) return a.time - b.time
  const [tokensA, tokensB] = [a.sums.values[totalTokens]!, b.sums.values[totalTokens]!]
  if (tokensA !== tokensB) return tokensB - tokensA
  for (const name of [...dimensionNames, "label"] as const) {
    const order = compareText(a[name], b[name])
    if (order !== 0) return order
  }
  return 0
}

/** A row with the value that it is sorted by. */
interface RankedRow {
  readonly row: UsageRow
  readonly value: number | bigint | null
}

const compareRanked = (order: RowOrder["order"] | undefined) => (a: RankedRow, b: RankedRow): number =>
  a.value === b.value
    ? compareRows(a.row, b.row)
    : a.value === null
    ? 1
    : b.value === null
    ? -1
    : (a.value < b.value) === (order === "asc")
    ? -1
    : 1

const slice = { items: sliceItems, chars: 0 }

/** A merge sort in slices. */
export function* sortSliced<A>(
  items: ReadonlyArray<A>,
  compare: (a: A, b: A) => number
): Cooperative<ReadonlyArray<A>> {
  let runs: Array<ReadonlyArray<A>> = []
  for (let start = 0; start < items.length; start += sliceItems) {
    runs.push(items.slice(start, start + sliceItems).sort(compare))
    if (start + sliceItems < items.length) yield slice
  }
  while (runs.length > 1) {
    const merged: Array<ReadonlyArray<A>> = []
    for (let i = 0; i < runs.length; i += 2) {
      const [a, b] = [runs[i]!, runs[i + 1]]
      merged.push(b === undefined ? a : yield* mergeSliced(a, b, compare))
    }
    runs = merged
  }
  return runs[0] ?? []
}

function* mergeSliced<A>(
  a: ReadonlyArray<A>,
  b: ReadonlyArray<A>,
  compare: (a: A, b: A) => number
): Cooperative<ReadonlyArray<A>> {
  const out: Array<A> = []
  let [i, j] = [0, 0]
  while (i < a.length || j < b.length) {
    const takesA = j === b.length || (i < a.length && compare(a[i]!, b[j]!) <= 0)
    out.push(takesA ? a[i++]! : b[j++]!)
    if (out.length % sliceItems === 0) yield slice
  }
  return out
}

const separator = "\u0000"

/**
 * Makes the report from buckets, which may be sums of some already. The pieces are read lazily. If rows are grouped by time,
 * they must be in the order of their hours, so that memory holds only the rows of the report and those of one hour or day; with an order of
 * its own, twice the rows of the report.
 */
export function* makeReport(query: UsageQuery, pieces: Iterable<Piece>): Cooperative<UsageReport> {
  const { by, labels, limit, sort } = query
  const labelOf = labels?.of ?? (() => none)
  const isByLabel = by.includes("label")
  const compare = compareRanked(sort?.order)
  const names = dimensionNames.filter((name) => by.includes(name))
  const totals = zero()
  let rows: Array<RankedRow> = []
  let groups = new Map<string, UsageRow>()
  let time = Number.NEGATIVE_INFINITY
  let truncated = false

  function* flushGroups(): Cooperative<void> {
    for (const { sums } of groups.values()) addSums(totals, sums)
    const ranked = yield* mapCooperatively(new Slice(), [...groups.values()], (row): RankedRow => ({
      row,
      value: sort === undefined ? null : sort.valueOf(row.sums)
    }))
    const sorted = yield* sortSliced(ranked, compare)
    groups = new Map()
    truncated ||= rows.length + sorted.length > limit
    for (let i = 0; i < sorted.length && i < limit && (sort !== undefined || rows.length < limit); i++) {
      rows.push(sorted[i]!)
    }
    if (rows.length > 2 * limit) yield* cutRows()
  }

  /** Keeps the first rows of the query's order. */
  function* cutRows(): Cooperative<void> {
    rows = (yield* sortSliced(rows, compare)).slice(0, limit)
  }

  for (const piece of pieces) {
    for (const bucket of piece.buckets) {
      if (labels?.only?.has(labelOf(bucket.key)) === false) continue
      if (by.length === 0) {
        addSums(totals, bucket.sums)
        continue
      }
      const at = timeOf(query, bucket.hour)
      if (at !== time) {
        yield* flushGroups()
        time = at
      }
      // Buckets beyond the limit of rows count only for the totals.
      if (sort === undefined && rows.length >= limit) {
        truncated = true
        addSums(totals, bucket.sums)
        continue
      }
      const label = isByLabel ? labelOf(bucket.key) : ""
      let id = label + separator
      for (const name of names) id += bucket[name] + separator
      let group = groups.get(id)
      if (group === undefined) {
        const dimensions = dimensionsBy((name) => names.includes(name) ? bucket[name] : "")
        group = { time: at, ...dimensions, label, sums: zero() }
        groups.set(id, group)
      }
      addSums(group.sums, bucket.sums)
    }
    yield { items: piece.looked, chars: 0 }
  }
  yield* flushGroups()
  if (sort !== undefined) yield* cutRows()
  return { rows: rows.map(({ row }) => row), totals, truncated }
}

/** Cuts ordered buckets into pieces. */
export function* inPieces(buckets: ReadonlyArray<Bucket>): Generator<Piece> {
  for (let start = 0; start < buckets.length; start += sliceItems) {
    const some = buckets.slice(start, start + sliceItems)
    yield { buckets: some, looked: some.length }
  }
}
