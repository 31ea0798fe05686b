/**
 * The tables of the SQLite file of usage, and transactions.
 */
import type { DatabaseSync } from "node:sqlite"
import { mostSum } from "../domain/decimal.ts"
import { type Cooperative, runSync } from "../domain/stream/cooperative.ts"
import { sumOfTexts } from "./Times.ts"
import {
  cacheNames,
  costNames,
  type DimensionName,
  historyNames,
  laterNames,
  measureNames,
  sessionNames,
  sumNames
} from "./UsageEntry.ts"

/** The format of the tables. A file of another one is left as it is. */
const format = 7

/** So many marks of values. */
export const marks = (count: number): string => Array.from({ length: count }, () => "?").join(", ")
/** The column of times, as text; `null` where none was measured. */
export const timesName = "times"
/** Texts of times that are shorter are put one behind the other, which costs less than to sum them. */
const longestUnsummed = 300
/** What a column is set to where a row is added to another one. */
const sumIn = (table: string, name: string): string =>
  name === timesName
    ? `CASE WHEN length(${table}.${name}) > ${longestUnsummed} THEN sum_of_times(${table}.${name}, excluded.${name})
       ELSE coalesce(${table}.${name} || ' ' || excluded.${name}, ${table}.${name}, excluded.${name}) END`
    : `min(${table}."${name}" + excluded."${name}", ${mostSum})`
/** What sets columns where a row is added to another one. */
export const added = (names: ReadonlyArray<string>, table: string): string =>
  names.map((name) => `"${name}" = ${sumIn(table, name)}`).join(", ")
/** The columns of a bucket's sums. */
export const sumColumns = [...sumNames, timesName]
/** A list of columns. */
export const quoted = (names: ReadonlyArray<string>): string => names.map((name) => `"${name}"`).join(", ")

/** The columns behind those of `measureNames`. */
const moreNames = [...costNames, ...laterNames, ...cacheNames]
const costColumns = (names: ReadonlyArray<string>) => names.map((name) => `${name} INTEGER NOT NULL DEFAULT 0`)
/** The cost columns of `key_counts`. */
export const countCosts = ["cost_units", "cost_nanos"]

/** A table of buckets, and the one of their errors. */
export interface BucketTable {
  readonly sums: string
  readonly errors: string
  readonly dimensions: ReadonlyArray<DimensionName>
  /** The columns of a bucket's position. */
  readonly place: string
  readonly placeLength: number
  readonly placeMarks: string
  /** The column of a dimension. */
  readonly columnOf: (name: DimensionName) => string
  /** What restricts the rows of the tables to those of this one, as one more condition. */
  readonly part: string
}

const bucketTable = (
  sums: string,
  errors: string,
  dimensions: ReadonlyArray<DimensionName>,
  place: ReadonlyArray<string> = dimensions
): BucketTable => ({
  sums,
  errors,
  dimensions,
  place: ["hour", ...place].join(", "),
  placeLength: 1 + place.length,
  placeMarks: marks(1 + place.length),
  columnOf: (name) => name,
  part: ""
})

/** The history, and the usage of sessions. */
export const history = bucketTable("usage", "usage_errors", historyNames)
export const sessions = bucketTable("session_usage", "session_errors", sessionNames)

/** The tables of the days of the history, summed by each dimension, and the columns of a position in them. */
export const days = { sums: "usage_days", errors: "usage_day_errors" }
export const dayPlace = ["dimension", "hour", "value"]

/** The days of the history, summed by one dimension. */
export const daysBy = (of: DimensionName): BucketTable => ({
  ...bucketTable(days.sums, days.errors, historyNames, ["value"]),
  columnOf: (name) => name === of ? "value" : "''",
  part: ` AND dimension = '${of}'`
})

const made = (
  { errors, sums }: Pick<BucketTable, "errors" | "sums">,
  place: ReadonlyArray<string>
): string => {
  const columns = place.map((name) => `${name} ${name === "hour" ? "INTEGER" : "TEXT"} NOT NULL`).join(", ")
  return `
    CREATE TABLE ${sums} (
      ${columns},
      ${measureNames.map((name) => `"${name}" INTEGER NOT NULL`).join(", ")},
      ${costColumns(moreNames).join(", ")},
      ${timesName} TEXT,
      PRIMARY KEY (${place.join(", ")})
    ) WITHOUT ROWID, STRICT;
    CREATE TABLE ${errors} (
      ${columns},
      code TEXT NOT NULL, count INTEGER NOT NULL,
      PRIMARY KEY (${place.join(", ")}, code)
    ) WITHOUT ROWID, STRICT;
  `
}

/** The usage of sessions, and when each was used last. */
const sessionLayout = `
  ${made(sessions, ["hour", ...sessionNames])}
  CREATE INDEX session_usage_of ON session_usage (key, session);
  CREATE INDEX session_errors_of ON session_errors (key, session);
  CREATE TABLE sessions (key TEXT NOT NULL, session TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (key, session))
    WITHOUT ROWID, STRICT;
  CREATE INDEX sessions_at ON sessions (at);
`

/** Days that are over, summed once by each dimension. */
const dayLayout = `
  ${made(days, dayPlace)}
  CREATE TABLE summed_days (day INTEGER PRIMARY KEY) STRICT;
`

/** The pauses and quotas of accounts, by their hashes. `until` is the end of all. */
const accountLayout = `
  CREATE TABLE account_states (
    account TEXT PRIMARY KEY, until INTEGER NOT NULL, paused_until INTEGER NOT NULL, windows TEXT NOT NULL
  ) WITHOUT ROWID, STRICT;
`

const layout = `
  ${made(history, ["hour", ...historyNames])}
  ${sessionLayout}
  ${dayLayout}
  ${accountLayout}
  CREATE TABLE key_counts (
    unit TEXT NOT NULL, start INTEGER NOT NULL, key TEXT NOT NULL, requests INTEGER NOT NULL, tokens INTEGER NOT NULL,
    ${costColumns(countCosts).join(", ")},
    PRIMARY KEY (unit, start, key)
  ) WITHOUT ROWID, STRICT;
  CREATE TABLE key_last_used (key TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID, STRICT;
  PRAGMA user_version = ${format};
`

/** The file is a database of another format or of another program, and is left as it is. */
export class ForeignDatabase extends Error {}

/** Runs sliced work in one transaction, all or nothing. Throws SQLite's errors. */
export function* slicedTransaction(db: DatabaseSync, work: Cooperative<void>): Cooperative<void> {
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
export const inTransaction = (db: DatabaseSync, step: () => void): void => {
  function* work(): Cooperative<void> {
    step()
  }
  runSync(slicedTransaction(db, work()))
}

const textOrNull = (value: unknown): string | null => typeof value === "string" ? value : null

const versionOf = (db: DatabaseSync): number => Number(db.prepare("PRAGMA user_version").get()?.["user_version"])

/** Makes the tables of an empty database. Throws `ForeignDatabase`, and SQLite's errors. */
export const prepareDatabase = (db: DatabaseSync): void => {
  const tables = Number(db.prepare("SELECT count(*) AS tables FROM sqlite_master").get()?.["tables"])
  const version = versionOf(db)
  if (version === 0 && tables > 0) throw new ForeignDatabase("is a database of another program")
  if (version !== 0 && version !== format) {
    throw new ForeignDatabase(
      `has format ${version}, and this version reads format ${format}: start the version that wrote it, or move the file away`
    )
  }
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL")
  if (version === 0) {
    inTransaction(db, () => {
      // Another process may have been first.
      if (versionOf(db) === 0) db.exec(layout)
    })
  }
  // No statement waits for a lock while requests are served.
  db.exec("PRAGMA busy_timeout = 0")
  db.function("sum_of_times", { deterministic: true }, (one, other) => sumOfTexts(textOrNull(one), textOrNull(other)))
  for (const { place, sums } of [history, sessions, { ...days, place: dayPlace.join(", ") }]) {
    db.prepare(`SELECT ${place}, ${quoted(sumColumns)} FROM ${sums} LIMIT 1`).get()
  }
}
