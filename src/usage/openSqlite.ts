/**
 * Opens the SQLite file of usage: makes its folder, and moves an unreadable file aside. Detects an open file that was removed
 * or replaced on the disk.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type * as PlatformError from "effect/PlatformError"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { statSync, unlinkSync } from "node:fs"
import { dirname } from "node:path"
import type { DatabaseSync } from "node:sqlite"
import { ForeignDatabase, prepareDatabase } from "./sqliteLayout.ts"

/** The file cannot be used. */
export class UsageFileError extends Schema.TaggedError<UsageFileError>()("UsageFileError", {
  /** `busy`: another process is writing. `full`: the disk has no space. `corrupt`: the file is damaged. */
  kind: Schema.Literals(["busy", "full", "corrupt", "other"]),
  message: Schema.String
}) {}

/** SQLite's primary result codes, each as a kind and the end of a sentence. */
const faults: ReadonlyMap<number, readonly [UsageFileError["kind"], string]> = new Map([
  [5, ["busy", "is locked by another process"]],
  [6, ["busy", "is locked by another process"]],
  [8, ["other", "is read-only"]],
  [10, ["other", "cannot be read or written: its disk fails or is full"]],
  [11, ["corrupt", "is damaged"]],
  [13, ["full", "cannot be written: no space is left on its disk"]],
  [14, ["other", "cannot be opened"]],
  [26, ["corrupt", "is not a database"]]
])

/** The primary result codes of a row that no table takes: too big, a constraint, another type, out of range. */
const rowCodes: ReadonlySet<number> = new Set([18, 19, 20, 25])

/** Why one row cannot be written, though the file can be; `undefined` for an error of the file, and for a bug. */
export const rowFault = (error: unknown): string | undefined => {
  if (!(error instanceof Error)) return undefined
  const isRow = Predicate.hasProperty(error, "errcode")
    ? typeof error.errcode === "number" && rowCodes.has(error.errcode & 0xff)
    // A value that Node gives to no statement.
    : Predicate.hasProperty(error, "code") && /^ERR_(?:INVALID_ARG|OUT_OF_RANGE)/.test(String(error.code))
  return isRow ? error.message : undefined
}

/** An error that SQLite threw. Rethrows every other error, which is a bug. */
export const usageFileError = (file: string, error: unknown): UsageFileError => {
  if (error instanceof ForeignDatabase) {
    return new UsageFileError({ kind: "other", message: `${file} ${error.message}` })
  }
  if (!Predicate.hasProperty(error, "errcode") || typeof error.errcode !== "number") throw error
  const code = error.errcode & 0xff
  const [kind, sentence] = faults.get(code) ?? ["other" as const, `cannot be used (SQLite error ${code})`]
  return new UsageFileError({ kind, message: `${file} ${sentence}` })
}

const platformError = (file: string) => (error: PlatformError.PlatformError): UsageFileError =>
  new UsageFileError({ kind: "other", message: `${file} cannot be made (${error.reason._tag})` })

/** The connections to the file. */
export interface SqliteConnections {
  /** For one writer at a time. */
  readonly writer: DatabaseSync
  /** For short reads of committed data. */
  readonly reader: DatabaseSync
  /** Opens a connection for one long read. Throws SQLite's errors. */
  readonly open: () => DatabaseSync
  /** What has happened to the file at its path. SQLite goes on in a removed file, which has no name. */
  readonly lost: () => "removed" | "replaced" | undefined
  readonly close: () => void
}

/** Makes a connection to a file. */
export type Connect = (file: string, options: { readonly readOnly: boolean; readonly timeout: number }) => DatabaseSync

/** SQLite of this version of Node. */
export const loadConnect: Effect.Effect<Connect, UsageFileError> = Effect.tryPromise({
  try: async () => {
    const { DatabaseSync } = await import("node:sqlite")
    return (file, options) => new DatabaseSync(file, options)
  },
  catch: () => new UsageFileError({ kind: "other", message: "this version of Node has no SQLite" })
})

/** Milliseconds that the start waits for another process that opens the same file. */
const openTimeout = 2000

/** Suffixes of the files that SQLite keeps beside the database. */
const besides = ["-wal", "-shm"]

/** The identity of the file at a path, or `undefined` without a file. Throws the system's other errors. */
const identityOf = (file: string): string | undefined => {
  try {
    const { dev, ino } = statSync(file, { bigint: true })
    return `${dev} ${ino}`
  } catch (error) {
    if (Predicate.hasProperty(error, "code") && (error.code === "ENOENT" || error.code === "ENOTDIR")) return undefined
    throw error
  }
}

/** What has happened to the file of `identity` at a path. */
const lossOf = (file: string, identity: string | undefined) => {
  try {
    const now = identityOf(file)
    return now === identity ? undefined : now === undefined ? "removed" : "replaced"
  } catch {
    // A path that cannot be read says nothing about the file.
    return undefined
  }
}

/** Removes the files left beside a lost database: SQLite would read them as part of the new one. */
const removeBesides = (identities: ReadonlyMap<string, string | undefined>): void => {
  for (const [path, identity] of identities) {
    if (identity === undefined || lossOf(path, identity) !== undefined) continue
    try {
      unlinkSync(path)
    } catch {
      // In a read-only folder no new database begins.
    }
  }
}

const connectAll = (connect: Connect, file: string): SqliteConnections => {
  const identity = identityOf(file)
  const writer = connect(file, { readOnly: false, timeout: openTimeout })
  try {
    prepareDatabase(writer)
    const open = () => connect(file, { readOnly: true, timeout: 0 })
    const reader = open()
    const beside = new Map(besides.map((suffix) => [file + suffix, identityOf(file + suffix)]))
    const lost = () => lossOf(file, identity)
    return {
      writer,
      reader,
      open,
      lost,
      close: () => {
        if (lost() !== undefined) removeBesides(beside)
        reader.close()
        writer.close()
      }
    }
  } catch (error) {
    writer.close()
    throw error
  }
}

/** Moves an unreadable database aside, with the files beside it. */
const setAside = Effect.fnUntraced(function*(file: string) {
  const fs = yield* FileSystem.FileSystem
  const aside = `${file}.corrupt-${Math.floor((yield* Clock.currentTimeMillis) / 1000)}`
  for (const suffix of [...besides, ""]) {
    if (yield* fs.exists(file + suffix)) yield* fs.rename(file + suffix, aside + suffix)
  }
  return aside
})

/**
 * Opens the file; makes it and its folder if they are missing. An unreadable file is moved to
 * `<file>.corrupt-<unix seconds>`, a new one begins, and both are logged.
 */
export const openSqlite = Effect.fnUntraced(function*(
  file: string,
  given?: Connect
): Effect.fn.Return<SqliteConnections, UsageFileError, FileSystem.FileSystem> {
  const fs = yield* FileSystem.FileSystem
  const connect = given ?? (yield* loadConnect)
  const attempt = Effect.gen(function*() {
    yield* fs.makeDirectory(dirname(file), { recursive: true, mode: 0o700 })
    // To open a pipe would wait, and to write to a device would damage what is on it.
    const there = yield* Effect.option(fs.stat(file))
    if (Option.isSome(there) && there.value.type !== "File") {
      return yield* new UsageFileError({ kind: "other", message: `${file} is not a regular file` })
    }
    // SQLite gives the files that it makes beside the database the same permissions.
    yield* Effect.scoped(fs.open(file, { flag: "a", mode: 0o600 }))
    return yield* Effect.try({
      try: () => connectAll(connect, file),
      catch: (error) => usageFileError(file, error)
    })
  }).pipe(Effect.catchTag("PlatformError", (error) => Effect.fail(platformError(file)(error))))
  return yield* Effect.catchIf(attempt, (error) => error.kind === "corrupt", (error) =>
    setAside(file).pipe(
      Effect.mapError(platformError(file)),
      Effect.tap((aside) => Effect.logError(`${error.message}: moved to ${aside}, a new history begins`)),
      Effect.andThen(attempt)
    ))
})
