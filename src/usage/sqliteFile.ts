/**
 * The SQLite file of usage: its layout, its reads and its writes. Every function works in steps that are short for a file of
 * any size. Times are stored as milliseconds of Unix time.
 *
 * The windows of keys, of accounts and of upstreams have a table of their own, written in the same transaction as the history. So the
 * counters of a key are a look-up, however long the history is.
 */
import type { DatabaseSync, SQLOutputValue } from "node:sqlite"
import { joinAmount, nanosInUnit, splitAmount } from "../domain/decimal.ts"
import { decodeWindows, encodeWindows } from "../domain/quota.ts"
import { type Cooperative, runSync } from "../domain/stream/cooperative.ts"
import { upstreamNamed } from "../domain/upstreamNames.ts"
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
import { confirming, firstKept, type HistoryHours, type RetentionCutoffs } from "./retention.ts"
import {
  addErrors,
  cacheNames,
  costNames,
  type DimensionName,
  dimensionsBy,
  historyNames,
  laterNames,
  measureNames,
  none,
  sessionNames,
  sumNames,
  type Sums,
  zero
} from "./UsageEntry.ts"
import { asksSessions, type Piece, unitRead, type UsageQuery } from "./UsageQuery.ts"
import { mostSessionRows } from "./UsageStoreShape.ts"
import { dayLength, dayOf } from "./windows.ts"

/** Rises with every change of the tables. */
const layoutVersion = 6

const marks = (count: number): string => Array.from({ length: count }, () => "?").join(", ")
const added = (names: ReadonlyArray<string>, table: string): string =>
  names.map((name) => `"${name}" = ${table}."${name}" + excluded."${name}"`).join(", ")
const quoted = sumNames.map((name) => `"${name}"`)

/** The columns behind those of `measureNames`. */
const moreNames = [...costNames, ...laterNames, ...cacheNames]
const costColumns = (names: ReadonlyArray<string>) => names.map((name) => `${name} INTEGER NOT NULL DEFAULT 0`)
/** The cost columns of `key_counts`. */
const countCosts = ["cost_units", "cost_nanos"]

/** A table of buckets, and the one of their errors. */
interface BucketTable {
  readonly sums: string
  readonly errors: string
  readonly dimensions: ReadonlyArray<DimensionName>
  /** The columns of a bucket's position. */
  readonly place: string
  readonly placeLength: number
  readonly placeMarks: string
}

const bucketTable = (sums: string, errors: string, dimensions: ReadonlyArray<DimensionName>): BucketTable => ({
  sums,
  errors,
  dimensions,
  place: ["hour", ...dimensions].join(", "),
  placeLength: 1 + dimensions.length,
  placeMarks: marks(1 + dimensions.length)
})

const history = bucketTable("usage", "usage_errors", historyNames)
const sessions = bucketTable("session_usage", "session_errors", sessionNames)

const made = ({ dimensions, errors, place, sums }: BucketTable): string => {
  const columns = ["hour INTEGER NOT NULL", ...dimensions.map((name) => `${name} TEXT NOT NULL`)].join(", ")
  return `
    CREATE TABLE ${sums} (
      ${columns},
      ${measureNames.map((name) => `"${name}" INTEGER NOT NULL`).join(", ")},
      ${costColumns(moreNames).join(", ")},
      PRIMARY KEY (${place})
    ) WITHOUT ROWID, STRICT;
    CREATE TABLE ${errors} (
      ${columns},
      code TEXT NOT NULL, count INTEGER NOT NULL,
      PRIMARY KEY (${place}, code)
    ) WITHOUT ROWID, STRICT;
  `
}

/** The usage of sessions, and when each was used last. */
const sessionLayout = `
  ${made(sessions)}
  CREATE INDEX session_usage_of ON session_usage (key, session);
  CREATE INDEX session_errors_of ON session_errors (key, session);
  CREATE TABLE sessions (key TEXT NOT NULL, session TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (key, session))
    WITHOUT ROWID, STRICT;
  CREATE INDEX sessions_at ON sessions (at);
`

/** The pauses and quotas of accounts, by their hashes. `until` is the end of all. */
const accountLayout = `
  CREATE TABLE account_states (
    account TEXT PRIMARY KEY, until INTEGER NOT NULL, paused_until INTEGER NOT NULL, windows TEXT NOT NULL
  ) WITHOUT ROWID, STRICT;
`

const layout = `
  ${made(history)}
  ${sessionLayout}
  ${accountLayout}
  CREATE TABLE key_counts (
    unit TEXT NOT NULL, start INTEGER NOT NULL, key TEXT NOT NULL, requests INTEGER NOT NULL, tokens INTEGER NOT NULL,
    ${costColumns(countCosts).join(", ")},
    PRIMARY KEY (unit, start, key)
  ) WITHOUT ROWID, STRICT;
  CREATE TABLE key_last_used (key TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  PRAGMA user_version = ${layoutVersion};
`

/** The upstream of histories from before there were others. */
const former = upstreamNamed(undefined)

const withCosts = (table: string, names: ReadonlyArray<string>): string =>
  costColumns(names).map((column) => `ALTER TABLE ${table} ADD COLUMN ${column};`).join("\n")

/**
 * Changes the tables of a former layout: 1 knew one upstream, 2 had no costs, 3 had neither written tokens nor wasted costs, 4 had
 * neither apps nor sessions, and 5 had neither predictions of caches nor states of accounts.
 */
const fromLayout = (version: number): string => {
  if (version === 5) {
    return `
      ${withCosts(history.sums, cacheNames)}
      ${withCosts(sessions.sums, cacheNames)}
      ${accountLayout}
      PRAGMA user_version = ${layoutVersion};
    `
  }
  const values = historyNames.map((name) =>
    name === "app"
      ? `'${none}'`
      : version > 1 || (name !== "upstream" && name !== "target")
      ? name
      : name === "upstream"
      ? `'${former}'`
      : `CASE model WHEN '${none}' THEN '${none}' ELSE '${former}/' || model END`
  )
  const names = [...measureNames, ...(version > 2 ? costNames : []), ...(version > 3 ? laterNames : [])]
  const moved = (table: string, columns: string): string => `
    INSERT INTO ${table} (${history.place}, ${columns})
      SELECT hour, ${values.join(", ")}, ${columns} FROM ${table}_before;
    DROP TABLE ${table}_before;
  `
  return `
    ALTER TABLE usage RENAME TO usage_before;
    ALTER TABLE usage_errors RENAME TO usage_errors_before;
    ${made(history)}
    ${moved("usage", names.map((name) => `"${name}"`).join(", "))}
    ${moved("usage_errors", "code, count")}
    ${version > 2 ? "" : withCosts("key_counts", countCosts)}
    ${sessionLayout}
    ${accountLayout}
    PRAGMA user_version = ${layoutVersion};
  `
}

/** The file is a database of a newer gateway or of another program, and is left as it is. */
export class ForeignDatabase extends Error {}

/** Runs sliced work in one transaction, all or nothing. Throws SQLite's errors. */
function* slicedTransaction(db: DatabaseSync, work: Cooperative<void>): Cooperative<void> {
  db.exec("BEGIN IMMEDIATE")
  try {
    yield* work
    db.exec("COMMIT")
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK")
    throw error
  }
}

/** Runs a short step in one transaction. Throws SQLite's errors. */
const inTransaction = (db: DatabaseSync, step: () => void): void => {
  function* work(): Cooperative<void> {
    step()
  }
  runSync(slicedTransaction(db, work()))
}

const versionOf = (db: DatabaseSync): number => Number(db.prepare("PRAGMA user_version").get()?.["user_version"])

/** Makes the tables of an open database, or brings those of an older layout up to date. Throws `ForeignDatabase`, and SQLite's errors. */
export const prepareDatabase = (db: DatabaseSync): void => {
  const tables = Number(db.prepare("SELECT count(*) AS tables FROM sqlite_master").get()?.["tables"])
  const version = versionOf(db)
  if (version > layoutVersion) {
    throw new ForeignDatabase(`was written by a newer version of the gateway (layout ${version})`)
  }
  if (version === 0 && tables > 0) throw new ForeignDatabase("is a database of another program")
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
  if (version < layoutVersion) {
    inTransaction(db, () => {
      // Another process may have been first.
      const current = versionOf(db)
      if (current < layoutVersion) db.exec(current === 0 ? layout : fromLayout(current))
    })
  }
  // No statement waits for a lock while requests are served.
  db.exec("PRAGMA busy_timeout = 0")
  for (const { place, sums } of [history, sessions]) {
    db.prepare(`SELECT ${place}, ${quoted.join(", ")} FROM ${sums} LIMIT 1`).get()
  }
}

/** Writing a bucket costs about as much as handling this many characters. */
const bucketWeight = 1024
/** Buckets written between two yields. */
const bucketsInSlice = (256 * 1024) / bucketWeight

const full = { items: bucketsInSlice, chars: bucketsInSlice * bucketWeight }

/**
 * Writes a batch in one transaction, all or nothing, and removes the sessions beyond the number that is kept. Throws SQLite's errors.
 */
export const writeBatch = (db: DatabaseSync, batch: Batch, mostSessions: number): Cooperative<void> =>
  slicedTransaction(db, writeRows(db, batch, mostSessions))

/** Returns what adds a bucket to its table. */
const bucketWriter = (db: DatabaseSync, { dimensions, errors, place, placeLength, sums }: BucketTable) => {
  const upsert = db.prepare(
    `INSERT INTO ${sums} (${place}, ${quoted.join(", ")}) VALUES (${marks(placeLength + sumNames.length)})
     ON CONFLICT DO UPDATE SET ${added(sumNames, sums)}`
  )
  const upsertError = db.prepare(
    `INSERT INTO ${errors} (${place}, code, count) VALUES (${marks(placeLength + 2)})
     ON CONFLICT DO UPDATE SET ${added(["count"], errors)}`
  )
  return (bucket: Bucket): void => {
    const at = [bucket.hour, ...dimensions.map((name) => bucket[name])]
    upsert.run(...at, ...bucket.sums.values)
    bucket.sums.errors?.forEach((count, code) => upsertError.run(...at, code, count))
  }
}

function* writeRows(db: DatabaseSync, batch: Batch, mostSessions: number): Cooperative<void> {
  let done = 0
  const write = bucketWriter(db, history)
  for (const bucket of batch.buckets.values()) {
    write(bucket)
    if (++done % bucketsInSlice === 0) yield full
  }
  if (batch.sessions.size > 0) yield* writeSessions(db, batch, mostSessions)
  const upsertCount = db.prepare(
    `INSERT INTO key_counts (unit, start, key, requests, tokens, ${countCosts.join(", ")}) VALUES (${marks(7)})
     ON CONFLICT DO UPDATE SET ${added(["requests", "tokens", ...countCosts], "key_counts")}`
  )
  for (const { cost, key, requests, start, tokens, unit } of batch.counts.values()) {
    upsertCount.run(unit, start, key, requests, tokens, ...splitAmount(cost))
    if (++done % bucketsInSlice === 0) yield full
  }
  const upsertUse = db.prepare(
    "INSERT INTO key_last_used (key, at) VALUES (?, ?) ON CONFLICT DO UPDATE SET at = max(key_last_used.at, excluded.at)"
  )
  for (const [key, at] of batch.lastUsed) {
    upsertUse.run(key, at)
    if (++done % bucketsInSlice === 0) yield full
  }
  const putState = db.prepare(
    "INSERT OR REPLACE INTO account_states (account, until, paused_until, windows) VALUES (?, ?, ?, ?)"
  )
  for (const [account, read] of batch.accounts) {
    const { pausedUntil, windows } = read()
    const until = windows.reduce((latest, { resets_at }) => Math.max(latest, resets_at), pausedUntil)
    putState.run(account, Math.ceil(until), pausedUntil, encodeWindows(windows))
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

function* writeSessions(db: DatabaseSync, batch: Batch, mostSessions: number): Cooperative<void> {
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
    upsertUse.run(key, session, at)
    let rows = Number(rowsOf.get(key, session)?.["rows"])
    for (const bucket of buckets.values()) {
      const isNew = known.get(bucket.hour, ...sessionNames.map((name) => bucket[name])) === undefined
      write(isNew && rows >= mostSessionRows ? { ...bucket, agent: none, parent: none } : bucket)
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
    `SELECT requests, tokens, ${countCosts.join(", ")} FROM key_counts WHERE unit = ? AND start = ? AND key = ?`
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
const beginningOf = (hour: number, { dimensions }: BucketTable): Place => [hour, ...dimensions.map(() => "")]

type Row = ReadonlyArray<SQLOutputValue>

/** The columns of a row. A statement with `setReturnArrays` returns arrays, which its types declare as records. */
const columnsOf = (row: { readonly [column: string]: SQLOutputValue }): Row => Object.values(row)

/** The position of a row that begins with one. */
const placeOf = ([hour, ...rest]: Row, { dimensions }: BucketTable): Place => [
  Number(hour),
  ...rest.slice(0, dimensions.length).map(String)
]

const placeAfter = ({ place, placeMarks }: BucketTable): string => `(${place}) > (${placeMarks})`

/** Buckets of the file that are summed between two yields. */
const bucketsInPiece = 1000

const sumsOf = (row: Row, { placeLength }: BucketTable): Sums => {
  const sums = zero()
  for (let i = 0; i < sumNames.length; i++) sums.values[i] = Number(row[placeLength + i])
  return sums
}

/** The sum of a column. Whole units are moved out of the nanos: their sum may be beyond the exact numbers. */
const summed = (name: string): string => {
  switch (name) {
    case "cost_units":
    case "wasted_units":
      return `sum(${name}) + sum(${name.replace("units", "nanos")}) / ${nanosInUnit}`
    case "cost_nanos":
    case "wasted_nanos":
      return `sum(${name}) % ${nanosInUnit}`
    default:
      return `sum("${name}")`
  }
}

/**
 * The buckets that match a query, in pieces and in the order of their hours; the buckets of a piece that belong to one row
 * are summed. The database must be in a read transaction, so that all pieces show one moment.
 */
export function* readPieces(db: DatabaseSync, query: UsageQuery): Generator<Piece> {
  const { by, from, only, to } = query
  const table = asksSessions(query) ? sessions : history
  const { dimensions, place, placeLength, placeMarks } = table
  const unit = unitRead(query)
  const time = unit === "hour" ? "hour" : unit === "day" ? `hour - hour % ${dayLength}` : "0"
  const columns = [time, ...dimensions.map((name) => by.includes(name) ? name : "''")]
  const filters = dimensions.filter((name) => only[name] !== undefined)
  const wanted = filters.map((name) => ` AND ${name} IN (SELECT value FROM json_each(?))`).join("")
  const values = filters.map((name) => JSON.stringify([...only[name]!]))
  // A bound of the hour beside these would become the planner's index key, and each piece would read from the beginning.
  const range = `${placeAfter(table)} AND (${place}) <= (${placeMarks})${wanted}`
  const grouped = `GROUP BY ${columns.map((_, i) => i + 1).join(", ")}`
  const ending = db.prepare(
    `SELECT ${place} FROM ${table.sums} WHERE ${placeAfter(table)} AND hour < ? ORDER BY ${place} LIMIT 1 OFFSET ${
      bucketsInPiece - 1
    }`
  )
  const sums = db.prepare(
    `SELECT ${columns.join(", ")}, ${
      sumNames.map(summed).join(", ")
    } FROM ${table.sums} WHERE ${range} ${grouped} ORDER BY 1`
  )
  const errors = db.prepare(
    `SELECT ${columns.join(", ")}, code, sum(count) FROM ${table.errors} WHERE ${range} ${grouped}, code`
  )
  for (const statement of [ending, sums, errors]) statement.setReturnArrays(true)
  let after = beginningOf(from, table)
  for (;;) {
    const last = ending.get(...after, to)
    const found = last === undefined ? undefined : placeOf(columnsOf(last), table)
    const upTo = found ?? beginningOf(to, table)
    const buckets = new Map<string, Bucket>()
    for (const row of sums.all(...after, ...upTo, ...values).map(columnsOf)) {
      const at = placeOf(row, table)
      const [hour, ...names] = at
      const named = dimensionsBy((name) => names[dimensions.indexOf(name)] ?? "")
      buckets.set(at.join("\u0000"), { hour, ...named, sums: sumsOf(row, table) })
    }
    for (const row of errors.all(...after, ...upTo, ...values).map(columnsOf)) {
      const bucket = buckets.get(placeOf(row, table).join("\u0000"))
      if (bucket !== undefined) addErrors(bucket.sums, String(row[placeLength]), Number(row[placeLength + 1]))
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

/** Merges the hours from `since` on into their days, in steps. */
function* rollUp(db: DatabaseSync, since: number, before: number): Cooperative<void> {
  const { place, placeMarks } = history
  const next = db.prepare(
    `SELECT ${place} FROM usage WHERE ${placeAfter(history)} AND hour < ? ORDER BY ${place} LIMIT ${rowsInStep}`
  )
  next.setReturnArrays(true)
  const move = (table: string, columns: ReadonlyArray<string>, keys: string) => [
    db.prepare(
      `INSERT INTO ${table} (${keys}, ${columns.join(", ")})
       SELECT hour - hour % ${dayLength}, ${keys.slice("hour, ".length)}, ${columns.join(", ")} FROM ${table}
       WHERE (${place}) = (${placeMarks})
       ON CONFLICT DO UPDATE SET ${added(columns.map((name) => name.replaceAll(`"`, "")), table)}`
    ),
    db.prepare(`DELETE FROM ${table} WHERE (${place}) = (${placeMarks})`)
  ]
  const statements = [...move("usage", quoted, place), ...move("usage_errors", ["count"], `${place}, code`)]
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
  yield* removeRows(db, "usage", history.place, "hour < ?", removedBefore, onRemoved)
  yield* removeRows(db, "usage_errors", `${history.place}, code`, "hour < ?", removedBefore)
  yield* rollUp(db, since, daysBefore)
}
