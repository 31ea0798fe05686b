/**
 * The SQLite file of usage: its reads and its writes. Every function works in steps that are short for a file of
 * any size. Times are stored as milliseconds of Unix time.
 *
 * The windows of keys, of accounts and of upstreams have a table of their own, written in the same transaction as the history. So the
 * counters of a key are a look-up, however long the history is.
 */
import type { DatabaseSync, SQLOutputValue } from "node:sqlite"
import { joinAmount, mostSum, nanosInUnit, splitAmount } from "../domain/decimal.ts"
import { decodeWindows, encodeWindows } from "../domain/quota.ts"
import type { Cooperative } from "../domain/stream/cooperative.ts"
import { none } from "../domain/usageNames.ts"
import {
  type AccountState,
  type Batch,
  type Bucket,
  countersAt,
  type KeptUnit,
  keptUnits,
  type KeyCounters,
  sumCounters
} from "./Batch.ts"
import { rowFault } from "./openSqlite.ts"
import { confirming, firstKept, type HistoryHours, type RetentionCutoffs } from "./retention.ts"
import {
  added,
  type BucketTable,
  countCosts,
  dayPlace,
  days,
  daysBy,
  history,
  inTransaction,
  marks,
  quoted,
  sessions,
  slicedTransaction,
  sumColumns,
  timesName
} from "./sqliteLayout.ts"
import { addTimesText, timesText } from "./Times.ts"
import { addErrors, dimensionsBy, historyNames, sessionNames, sumNames, type Sums, zero } from "./UsageEntry.ts"
import { asksSessions, dayDimension, type Piece, reads, unitRead, type UsageQuery } from "./UsageQuery.ts"
import { mostSessionRows } from "./UsageStoreShape.ts"
import { dayLength, dayOf } from "./windows.ts"

/** Writing a bucket costs about as much as handling this many characters. */
const bucketWeight = 1024
/** Buckets written between two yields. */
const bucketsInSlice = (256 * 1024) / bucketWeight

const full = { items: bucketsInSlice, chars: bucketsInSlice * bucketWeight }

/** The rows of a batch that cannot be written, and why the first one cannot. */
export class LeftOut {
  rows = 0
  reason: string | undefined

  /** Writes a row, unless the file takes no such row. Throws SQLite's errors of the file. */
  tried(write: () => void): void {
    try {
      write()
    } catch (error) {
      const fault = rowFault(error)
      if (fault === undefined) throw error
      this.rows++
      this.reason ??= fault
    }
  }
}

/**
 * Writes a batch in one transaction, all or nothing but the rows that the file takes in no batch, and removes the sessions beyond the number
 * that is kept. Throws SQLite's errors.
 */
export function* writeBatch(db: DatabaseSync, batch: Batch, mostSessions: number): Cooperative<LeftOut> {
  const leftOut = new LeftOut()
  yield* slicedTransaction(db, writeRows(db, batch, mostSessions, leftOut))
  return leftOut
}

/** Returns what adds sums at a position to a table. */
const sumsWriter = (
  db: DatabaseSync,
  { errors, sums }: Pick<BucketTable, "errors" | "sums">,
  place: ReadonlyArray<string>
) => {
  const upsert = db.prepare(
    `INSERT INTO ${sums} (${place.join(", ")}, ${quoted(sumColumns)}) VALUES (${
      marks(place.length + sumColumns.length)
    })
     ON CONFLICT DO UPDATE SET ${added(sumColumns, sums)}`
  )
  const upsertError = db.prepare(
    `INSERT INTO ${errors} (${place.join(", ")}, code, count) VALUES (${marks(place.length + 2)})
     ON CONFLICT DO UPDATE SET ${added(["count"], errors)}`
  )
  return (at: ReadonlyArray<string | number>, { errors: codes, times, values }: Sums): void => {
    upsert.run(...at, ...values.map((value) => Math.min(value, mostSum)), times === undefined ? null : timesText(times))
    codes?.forEach((count, code) => upsertError.run(...at, code, count))
  }
}

/** Returns what adds a bucket to its table. */
const bucketWriter = (db: DatabaseSync, table: BucketTable) => {
  const { dimensions } = table
  const write = sumsWriter(db, table, ["hour", ...dimensions])
  return (bucket: Bucket): void => write([bucket.hour, ...dimensions.map((name) => bucket[name])], bucket.sums)
}

function* writeRows(db: DatabaseSync, batch: Batch, mostSessions: number, leftOut: LeftOut): Cooperative<void> {
  let done = 0
  const write = bucketWriter(db, history)
  const writeDay = sumsWriter(db, days, dayPlace)
  const summedDays = new Set(db.prepare("SELECT day FROM summed_days").all().map(({ day }) => Number(day)))
  for (const bucket of batch.buckets.values()) {
    leftOut.tried(() => write(bucket))
    const day = dayOf(bucket.hour)
    // A request may end after the day in which it began is summed.
    if (summedDays.has(day)) {
      for (const name of historyNames) leftOut.tried(() => writeDay([name, day, bucket[name]], bucket.sums))
    }
    if (++done % bucketsInSlice === 0) yield full
  }
  if (batch.sessions.size > 0) yield* writeSessions(db, batch, mostSessions, leftOut)
  const upsertCount = db.prepare(
    `INSERT INTO key_counts (unit, start, key, requests, tokens, ${countCosts.join(", ")}) VALUES (${marks(7)})
     ON CONFLICT DO UPDATE SET ${added(["requests", "tokens", ...countCosts], "key_counts")}`
  )
  for (const { cost, key, requests, start, tokens, unit } of batch.counts.values()) {
    leftOut.tried(() => upsertCount.run(unit, start, key, requests, Math.min(tokens, mostSum), ...splitAmount(cost)))
    if (++done % bucketsInSlice === 0) yield full
  }
  const upsertUse = db.prepare(
    "INSERT INTO key_last_used (key, at) VALUES (?, ?) ON CONFLICT DO UPDATE SET at = max(key_last_used.at, excluded.at)"
  )
  for (const [key, at] of batch.lastUsed) {
    leftOut.tried(() => upsertUse.run(key, at))
    if (++done % bucketsInSlice === 0) yield full
  }
  const putState = db.prepare(
    "INSERT OR REPLACE INTO account_states (account, until, paused_until, windows) VALUES (?, ?, ?, ?)"
  )
  for (const [account, read] of batch.accounts) {
    const { pausedUntil, windows } = read()
    const until = windows.reduce((latest, { resets_at }) => Math.max(latest, resets_at), pausedUntil)
    leftOut.tried(() => putState.run(account, Math.ceil(until), pausedUntil, encodeWindows(windows)))
    if (++done % bucketsInSlice === 0) yield full
  }
}

/** The states of accounts that are not over at a time. */
export const readAccounts = (db: DatabaseSync, now: number): ReadonlyMap<string, AccountState> =>
  new Map(
    db.prepare("SELECT account, paused_until, windows FROM account_states WHERE until > ?").all(now).map((row) => [
      String(row["account"]),
      { pausedUntil: Number(row["paused_until"]), windows: decodeWindows(String(row["windows"])) }
    ])
  )

function* writeSessions(
  db: DatabaseSync,
  batch: Batch,
  mostSessions: number,
  leftOut: LeftOut
): Cooperative<void> {
  let done = 0
  const write = bucketWriter(db, sessions)
  const upsertUse = db.prepare(
    `INSERT INTO sessions (key, session, at) VALUES (?, ?, ?)
     ON CONFLICT DO UPDATE SET at = max(sessions.at, excluded.at)`
  )
  const rowsOf = db.prepare(
    `SELECT count(*) AS rows FROM (SELECT 1 FROM session_usage WHERE key = ? AND session = ? LIMIT ${mostSessionRows})`
  )
  const known = db.prepare(`SELECT 1 FROM session_usage WHERE (${sessions.place}) = (${sessions.placeMarks})`)
  for (const { at, buckets, key, session } of batch.sessions.sessions) {
    leftOut.tried(() => upsertUse.run(key, session, at))
    let rows = Number(rowsOf.get(key, session)?.["rows"])
    for (const bucket of buckets.values()) {
      const isNew = known.get(bucket.hour, ...sessionNames.map((name) => bucket[name])) === undefined
      leftOut.tried(() => write(isNew && rows >= mostSessionRows ? { ...bucket, agent: none, parent: none } : bucket))
      if (isNew) rows++
      if (++done % bucketsInSlice === 0) yield full
    }
  }
  const surplus = Number(db.prepare("SELECT count(*) AS sessions FROM sessions").get()?.["sessions"]) - mostSessions
  if (surplus <= 0) return
  const oldest = db.prepare("SELECT key, session FROM sessions ORDER BY at LIMIT ?")
  const removals = ["session_usage", "session_errors", "sessions"]
    .map((table) => db.prepare(`DELETE FROM ${table} WHERE key = ? AND session = ?`))
  for (const { key, session } of oldest.all(surplus)) {
    for (const removal of removals) removal.run(key!, session!)
    if (++done % bucketsInSlice === 0) yield full
  }
}

/** What a key has used of the windows that contain `now`. */
export const readCounters = (db: DatabaseSync, key: string, now: number): KeyCounters => {
  const at = countersAt(now)
  const starts: Array<readonly [KeptUnit, number]> = [["minute", at.minute], ["hour", at.hour]]
  for (let day = at.firstDay; day <= at.day; day += dayLength) starts.push(["day", day])
  const one = db.prepare(
    `SELECT requests, ${
      ["tokens", ...countCosts].map((name) => `min(${name}, ${mostSum}) AS ${name}`).join(", ")
    } FROM key_counts WHERE unit = ? AND start = ? AND key = ?`
  )
  const counts = starts.flatMap(([unit, start]) => {
    const row = one.get(unit, start, key)
    return row === undefined
      ? []
      : [{
        unit,
        start,
        requests: Number(row["requests"]),
        tokens: Number(row["tokens"]),
        cost: joinAmount(Number(row["cost_units"]), Number(row["cost_nanos"]))
      }]
  })
  const last = db.prepare("SELECT at FROM key_last_used WHERE key = ?").get(key)
  return sumCounters(at, counts, last === undefined ? undefined : Number(last["at"]))
}

/** A position in the order of the history. */
type Place = readonly [hour: number, ...names: ReadonlyArray<string>]

/** The position before all buckets of an hour. */
const beginningOf = (hour: number, { placeLength }: BucketTable): Place => [
  hour,
  ...Array.from({ length: placeLength - 1 }, () => "")
]

type Row = ReadonlyArray<SQLOutputValue>

/** The columns of a row. A statement with `setReturnArrays` returns arrays, which its types declare as records. */
const columnsOf = (row: { readonly [column: string]: SQLOutputValue }): Row => Object.values(row)

/** The hour and the texts that a row begins with, as many values as given. */
const beginOf = (
  [hour, ...rest]: Row,
  length: number
): Place => [Number(hour), ...rest.slice(0, length - 1).map(String)]

/** The position of a row that begins with one. */
const placeOf = (row: Row, { placeLength }: BucketTable): Place => beginOf(row, placeLength)

const placeAfter = ({ place, placeMarks }: BucketTable): string => `(${place}) > (${placeMarks})`

/** Buckets of the file that are summed between two yields. */
const bucketsInPiece = 1000

/** What finds the position of the last bucket of a piece: after a position, before an hour. */
const endOfPiece = (db: DatabaseSync, table: BucketTable) => {
  const { part, place, sums } = table
  const statement = db.prepare(
    `SELECT ${place} FROM ${sums} WHERE ${placeAfter(table)} AND hour < ?${part} ORDER BY ${place} LIMIT 1 OFFSET ${
      bucketsInPiece - 1
    }`
  )
  statement.setReturnArrays(true)
  return statement
}

/** The sums of a row that has so many values before them. */
const sumsOf = (row: Row, before: number): Sums => {
  const sums = zero()
  for (let i = 0; i < sumNames.length; i++) sums.values[i] = Number(row[before + i])
  const times = row[before + sumNames.length]
  if (typeof times === "string") addTimesText(sums.times = new Map(), times)
  return sums
}

/** A sum of integers that overflows fails, and so does the read of one that is no safe integer. */
const bounded = (name: string): string => `CAST(min(total("${name}"), ${mostSum}) AS INTEGER)`

/** The sum of a column. Whole units are moved out of the nanos: their sum may be beyond the exact numbers. */
const summed = (name: string): string => {
  switch (name) {
    case "cost_units":
    case "wasted_units":
      return `${bounded(name)} + sum(${name.replace("units", "nanos")}) / ${nanosInUnit}`
    case "cost_nanos":
    case "wasted_nanos":
      return `sum(${name}) % ${nanosInUnit}`
    case timesName:
      return `group_concat(${name}, ' ')`
    default:
      return bounded(name)
  }
}

/** A part of a query's time, with the table that has it. */
interface TimePart {
  readonly table: BucketTable
  readonly from: number
  /** Exclusive. */
  to: number
}

/** The parts of a query's time in their order: hours, and days that are summed. */
const timeParts = (db: DatabaseSync, query: UsageQuery): ReadonlyArray<TimePart> => {
  const { from, to } = query
  if (asksSessions(query)) return [{ table: sessions, from, to }]
  const of = dayDimension(query)
  const summedDays = of === undefined ? undefined : daysBy(of)
  const parts: Array<TimePart> = []
  const add = (table: BucketTable, start: number, end: number) => {
    const last = parts.at(-1)
    if (last?.table === table && last.to === start) last.to = end
    else if (start < end) parts.push({ table, from: start, to: end })
  }
  let at = from
  if (summedDays !== undefined) {
    for (
      const { day } of db.prepare("SELECT day FROM summed_days WHERE day BETWEEN ? AND ?").all(from, to - dayLength)
    ) {
      add(history, at, Number(day))
      at = Number(day) + dayLength
      add(summedDays, Number(day), at)
    }
  }
  add(history, at, to)
  return parts
}

/**
 * The buckets that match a query, in pieces and in the order of their hours; the buckets of a piece that belong to one row
 * are summed. The database must be in a read transaction, so that all pieces show one moment.
 */
export function* readPieces(db: DatabaseSync, query: UsageQuery): Generator<Piece> {
  for (const part of timeParts(db, query)) yield* readPart(db, query, part)
}

function* readPart(db: DatabaseSync, query: UsageQuery, { from, table, to }: TimePart): Generator<Piece> {
  const { only } = query
  const { columnOf, dimensions, part, place, placeMarks } = table
  const unit = unitRead(query)
  const time = unit === "hour" ? "hour" : unit === "day" ? `hour - hour % ${dayLength}` : "0"
  const columns = [time, ...dimensions.map((name) => reads(query, name) ? columnOf(name) : "''")]
  const filters = dimensions.filter((name) => only[name] !== undefined)
  const wanted = filters.map((name) => ` AND ${columnOf(name)} IN (SELECT json_each.value FROM json_each(?))`).join("")
  const values = filters.map((name) => JSON.stringify([...only[name]!]))
  // A bound of the hour beside these would become the planner's index key, and each piece would read from the beginning.
  const range = `${placeAfter(table)} AND (${place}) <= (${placeMarks})${part}${wanted}`
  const grouped = `GROUP BY ${columns.map((_, i) => i + 1).join(", ")}`
  const ending = endOfPiece(db, table)
  const sums = db.prepare(
    `SELECT ${columns.join(", ")}, ${
      sumColumns.map(summed).join(", ")
    } FROM ${table.sums} WHERE ${range} ${grouped} ORDER BY 1`
  )
  const errors = db.prepare(
    `SELECT ${columns.join(", ")}, code, sum(count) FROM ${table.errors} WHERE ${range} ${grouped}, code`
  )
  for (const statement of [sums, errors]) statement.setReturnArrays(true)
  let after = beginningOf(from, table)
  for (;;) {
    const last = ending.get(...after, to)
    const found = last === undefined ? undefined : placeOf(columnsOf(last), table)
    const upTo = found ?? beginningOf(to, table)
    const buckets = new Map<string, Bucket>()
    for (const row of sums.all(...after, ...upTo, ...values).map(columnsOf)) {
      const at = beginOf(row, columns.length)
      const [hour, ...names] = at
      const named = dimensionsBy((name) => names[dimensions.indexOf(name)] ?? "")
      buckets.set(at.join("\u0000"), { hour, ...named, sums: sumsOf(row, columns.length) })
    }
    for (const row of errors.all(...after, ...upTo, ...values).map(columnsOf)) {
      const bucket = buckets.get(beginOf(row, columns.length).join("\u0000"))
      if (bucket !== undefined) addErrors(bucket.sums, String(row[columns.length]), Number(row[columns.length + 1]))
    }
    yield { buckets: [...buckets.values()], looked: bucketsInPiece }
    if (found === undefined) return
    after = found
  }
}

/** Rows in one step of compaction. */
const rowsInStep = 200

const stepSize = { items: rowsInStep, chars: 0 }

/** Removes rows of a table, in steps. `onRemoved` gets the number of each step. */
function* removeRows(
  db: DatabaseSync,
  table: string,
  key: string,
  where: string,
  value: number,
  onRemoved?: (rows: number) => void
): Cooperative<void> {
  const remove = db.prepare(
    `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} WHERE ${where} LIMIT ${rowsInStep})`
  )
  for (;;) {
    const removed = Number(remove.run(value).changes)
    if (removed === 0) return
    onRemoved?.(removed)
    yield stepSize
  }
}

/** The hours of the history at a time. Each is a look-up, however long the history is. */
export const readHours = (db: DatabaseSync, now: number): HistoryHours => {
  const latest = db.prepare("SELECT max(hour) AS hour FROM usage WHERE hour < ?")
  const hourIn = (row: Record<string, unknown> | undefined): number | undefined =>
    typeof row?.["hour"] === "number" ? row["hour"] : undefined
  const newest: Array<number> = []
  let before = now + 1
  for (let i = 0; i < confirming.days; i++) {
    const hour = hourIn(latest.get(before))
    if (hour === undefined) break
    newest.push(hour)
    before = dayOf(hour)
  }
  return { oldest: hourIn(db.prepare("SELECT min(hour) AS hour FROM usage").get()), newest }
}

/** Removes the counts that are not kept at a time, and the states of accounts that are over, in steps. */
export function* dropDatabaseCounts(db: DatabaseSync, now: number): Cooperative<void> {
  const latest = db.prepare("SELECT max(start) AS start FROM key_counts WHERE unit = ? AND start < ?")
  for (const unit of keptUnits) {
    const first = firstKept(unit, now, (time) => {
      const start = latest.get(unit, time)?.["start"]
      return typeof start === "number" ? start : undefined
    })
    if (first === -Infinity) continue
    yield* removeRows(db, "key_counts", "unit, start, key", `unit = '${unit}' AND start < ?`, first)
  }
  yield* removeRows(db, "account_states", "account", "until < ?", now)
}

/** Removes the hours of sessions before a time, and the sessions that were not used since, in steps. */
export function* dropDatabaseSessions(db: DatabaseSync, first: number): Cooperative<void> {
  yield* removeRows(db, "session_usage", sessions.place, "hour < ?", first)
  yield* removeRows(db, "session_errors", `${sessions.place}, code`, "hour < ?", first)
  yield* removeRows(db, "sessions", "key, session", "at < ?", first)
}

/** The first day from `from` on that ends by `to`, has usage, and is not summed. */
const nextUnsummed = (db: DatabaseSync, from: number, to: number): number | undefined => {
  const next = db.prepare("SELECT min(hour) AS hour FROM usage WHERE hour >= ?")
  const isSummed = db.prepare("SELECT 1 FROM summed_days WHERE day = ?")
  for (let at = from;;) {
    const hour = next.get(at)?.["hour"]
    if (typeof hour !== "number" || dayOf(hour) + dayLength > to) return undefined
    const day = dayOf(hour)
    if (isSummed.get(day) === undefined) return day
    at = day + dayLength
  }
}

/**
 * Sums the hours of the first day from `from` on that ends by `to` and is not summed, in one transaction; returns it. The sums of such a day
 * are complete: `writeBatch` adds to them what comes later.
 */
export function* sumNextDay(db: DatabaseSync, from: number, to: number): Cooperative<number | undefined> {
  let day: number | undefined
  function* work(): Cooperative<void> {
    day = nextUnsummed(db, from, to)
    if (day !== undefined) yield* sumDay(db, day)
  }
  yield* slicedTransaction(db, work())
  return day
}

function* sumDay(db: DatabaseSync, day: number): Cooperative<void> {
  const { errors, place, placeMarks, sums } = history
  const ending = endOfPiece(db, history)
  const range = `${placeAfter(history)} AND (${place}) <= (${placeMarks})`
  const columns = sumColumns.map((name) => name === timesName ? `sum_of_times(${summed(name)}, NULL)` : summed(name))
  const statements = historyNames.flatMap((name) => [
    db.prepare(
      `INSERT INTO ${days.sums} (${dayPlace.join(", ")}, ${quoted(sumColumns)})
       SELECT '${name}', ${day}, ${name}, ${columns.join(", ")} FROM ${sums} WHERE ${range} GROUP BY ${name}
       ON CONFLICT DO UPDATE SET ${added(sumColumns, days.sums)}`
    ),
    db.prepare(
      `INSERT INTO ${days.errors} (${dayPlace.join(", ")}, code, count)
       SELECT '${name}', ${day}, ${name}, code, sum(count) FROM ${errors} WHERE ${range} GROUP BY ${name}, code
       ON CONFLICT DO UPDATE SET ${added(["count"], days.errors)}`
    )
  ])
  const end = day + dayLength
  let after = beginningOf(day, history)
  for (;;) {
    const last = ending.get(...after, end)
    const found = last === undefined ? undefined : placeOf(columnsOf(last), history)
    for (const statement of statements) {
      statement.run(...after, ...found ?? beginningOf(end, history))
      yield { items: bucketsInPiece, chars: 0 }
    }
    if (found === undefined) break
    after = found
  }
  db.prepare("INSERT INTO summed_days (day) VALUES (?)").run(day)
}

/** Merges the hours from `since` on into their days, in steps. */
function* rollUp(db: DatabaseSync, since: number, before: number): Cooperative<void> {
  const { place, placeMarks } = history
  const next = db.prepare(
    `SELECT ${place} FROM usage WHERE ${placeAfter(history)} AND hour < ? ORDER BY ${place} LIMIT ${rowsInStep}`
  )
  next.setReturnArrays(true)
  const move = (table: string, columns: ReadonlyArray<string>, keys: string) => [
    db.prepare(
      `INSERT INTO ${table} (${keys}, ${quoted(columns)})
       SELECT hour - hour % ${dayLength}, ${keys.slice("hour, ".length)}, ${quoted(columns)} FROM ${table}
       WHERE (${place}) = (${placeMarks})
       ON CONFLICT DO UPDATE SET ${added(columns, table)}`
    ),
    db.prepare(`DELETE FROM ${table} WHERE (${place}) = (${placeMarks})`)
  ]
  const statements = [...move("usage", sumColumns, place), ...move("usage_errors", ["count"], `${place}, code`)]
  let after = beginningOf(since, history)
  for (;;) {
    const rows = next.all(...after, before).map((row) => placeOf(columnsOf(row), history))
    const hours = rows.filter(([hour]) => hour !== dayOf(hour))
    // Rows that another process has merged meanwhile no longer match the statements.
    if (hours.length > 0) {
      inTransaction(db, () => hours.forEach((row) => statements.forEach((statement) => statement.run(...row))))
    }
    if (rows.length < rowsInStep) return
    after = rows[rows.length - 1]!
    yield stepSize
  }
}

/**
 * Merges old hours that began at `since` or later into days, and removes old days, in steps. Between two steps no transaction is
 * open, so that others can write. `onRemoved` gets the number of entries that each step has removed.
 */
export function* compactDatabase(
  db: DatabaseSync,
  { daysBefore, removedBefore }: RetentionCutoffs,
  since: number,
  onRemoved: (entries: number) => void
): Cooperative<void> {
  const summedFrom = Math.max(daysBefore, removedBefore)
  // What is not marked is not read.
  db.prepare("DELETE FROM summed_days WHERE day < ?").run(summedFrom)
  for (const { part } of historyNames.map(daysBy)) {
    yield* removeRows(db, days.sums, dayPlace.join(", "), `hour < ?${part}`, summedFrom)
    yield* removeRows(db, days.errors, [...dayPlace, "code"].join(", "), `hour < ?${part}`, summedFrom)
  }
  yield* removeRows(db, "usage", history.place, "hour < ?", removedBefore, onRemoved)
  yield* removeRows(db, "usage_errors", `${history.place}, code`, "hour < ?", removedBefore)
  yield* rollUp(db, since, daysBefore)
}
