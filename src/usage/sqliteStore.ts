/**
 * Usage kept in a SQLite file. Requests are summed in memory and written once a second, off the request path. A failed write
 * stays in memory and is retried. A file that was removed or replaced while open is opened again before the next write.
 */
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { DatabaseSync } from "node:sqlite"
import { runCooperatively } from "../config/clock/cooperative.ts"
import { type Cooperative, sliceItems } from "../domain/stream/cooperative.ts"
import { addCounters, Batch, type Bucket } from "./Batch.ts"
import { makeChangeHistory } from "./changes.ts"
import { changesInSqlite } from "./changesInSqlite.ts"
import { orderedBuckets, reportOf } from "./memoryStore.ts"
import { type Connect, openSqlite, type SqliteConnections, type UsageFileError, usageFileError } from "./openSqlite.ts"
import {
  compactBatch,
  compactHourly,
  daysBeforeAt,
  defaultKeepDays,
  defaultSessionDays,
  dropCounts,
  hoursOf,
  logRemoved,
  makeRetention,
  sessionsFrom,
  usageEntries
} from "./retention.ts"
import {
  compactDatabase,
  dropDatabaseCounts,
  dropDatabaseSessions,
  type LeftOut,
  readAccounts,
  readCounters,
  readHours,
  readPieces,
  sumNextDay,
  writeBatch
} from "./sqliteFile.ts"
import { inPieces, makeReport, type Piece, timeRead, type UsageQuery, type UsageReport } from "./UsageQuery.ts"
import {
  detailOf,
  maxBuckets,
  mostSessionsKept,
  type UsageStoreOptions,
  type UsageStoreShape
} from "./UsageStoreShape.ts"
import { hourLength } from "./windows.ts"

/** Options of a store in a file. */
export interface SqliteOptions extends UsageStoreOptions {
  readonly file: string
  /** Buckets held in memory; `maxBuckets` unless given. */
  readonly most?: number | undefined
  /** Makes the connections, for tests. */
  readonly connect?: Connect | undefined
}

/** The time between two writes. */
const writeEvery = "1 second"
/** Long reads that run concurrently; more of them wait. */
const maxReads = 4
/** Writes that may fail while another process locks the file, before `status` and the log say so. */
const patience = 10

function* caught<A>(file: string, work: Cooperative<A>): Cooperative<Result.Result<A, UsageFileError>> {
  try {
    return Result.succeed(yield* work)
  } catch (error) {
    return Result.fail(usageFileError(file, error))
  }
}

/** Merges the pieces of the file with the buckets in memory, both in the order of their hours. */
function* merged(
  query: UsageQuery,
  pieces: Iterable<Piece>,
  memory: ReadonlyArray<Bucket>
): Generator<Piece> {
  let taken = 0
  for (const { buckets, looked } of pieces) {
    let out: Array<Bucket> = []
    for (const bucket of buckets) {
      while (taken < memory.length && timeRead(query, memory[taken]!.hour) < bucket.hour) {
        out.push(memory[taken++]!)
        if (out.length >= sliceItems) {
          yield { buckets: out, looked: out.length }
          out = []
        }
      }
      out.push(bucket)
    }
    yield { buckets: out, looked }
  }
  yield* inPieces(memory.slice(taken))
}

/** Makes a store in a file; in memory for as long as the file cannot be used. */
export const makeSqliteStore = Effect.fnUntraced(function*(
  options: SqliteOptions
): Effect.fn.Return<Required<UsageStoreShape>, never, FileSystem.FileSystem | Scope.Scope> {
  const {
    connect,
    file,
    keepDays = () => defaultKeepDays,
    most = maxBuckets,
    mostSessions = mostSessionsKept,
    sessionDays = () => defaultSessionDays
  } = options
  const fs = yield* FileSystem.FileSystem
  const open = Effect.provideService(openSqlite(file, connect), FileSystem.FileSystem, fs)
  let connections: SqliteConnections | undefined
  let pending = new Batch()
  /** The batch that is being written, or whose write failed. */
  let writing: Batch | undefined
  /** The batches that the file does not have yet. */
  const unwritten = () => writing === undefined ? [pending] : [writing, pending]
  let dropped = 0
  let failures = 0
  let fault: string | undefined
  /** Hours before this are merged into days already. */
  let compactedTo = 0
  const writer = yield* Semaphore.make(1)
  const readers = yield* Semaphore.make(maxReads)

  const succeeded = Effect.suspend(() => {
    failures = 0
    if (fault === undefined) return Effect.void
    fault = undefined
    return Effect.logInfo("Usage is written to its file again")
  })
  const failed = (error: UsageFileError) =>
    Effect.suspend(() => {
      failures++
      if (fault === error.message || (error.kind === "busy" && failures < patience)) return Effect.void
      fault = error.message
      return Effect.logError(`Usage is kept in memory for now: ${error.message}`)
    })

  const noteLeftOut = ({ reason, rows }: LeftOut) =>
    Effect.suspend(() => {
      dropped += rows
      return rows === 0
        ? Effect.void
        : Effect.logError(
          `${rows} ${rows === 1 ? "row" : "rows"} of usage cannot be written and are left out: ${reason}`
        )
    })

  const close = () => {
    connections?.close()
    connections = undefined
  }

  /** The connections, opened again if they were closed. Needs the writer's permit. */
  const connected = Effect.suspend(() => {
    if (connections !== undefined) return Effect.succeed(connections)
    compactedTo = 0
    return Effect.map(open, (made) => {
      connections = made
      return made
    })
  })

  /** Closes a file that was removed or replaced. Needs the writer's permit. */
  const closeLost = Effect.suspend(() => {
    const loss = connections?.lost()
    if (loss === undefined) return Effect.void
    close()
    return Effect.logWarning(
      loss === "removed"
        ? `${file} was removed while it was in use: a new history begins`
        : `${file} was replaced while it was in use: usage continues in the new file`
    )
  })

  const run = <A>(work: (connections: SqliteConnections) => Cooperative<A>) =>
    Effect.flatMap(connected, (known) => Effect.flatMap(runCooperatively(caught(file, work(known))), Effect.fromResult))
      .pipe(
        // The next opening moves a damaged file aside. A locked file or a full disk only needs time.
        Effect.tapError(({ kind }) => Effect.sync(() => kind === "busy" || kind === "full" ? undefined : close()))
      )

  function* write(db: DatabaseSync, batch: Batch): Cooperative<LeftOut> {
    const leftOut = yield* writeBatch(db, batch, mostSessions)
    // In the same step as the commit: a read in between would count the batch twice.
    writing = undefined
    return leftOut
  }

  const flush = Effect.andThen(
    closeLost,
    Effect.suspend(() => {
      if (writing === undefined) {
        // Without new entries, a write of an empty batch ends a fault.
        if (pending.isEmpty && connections !== undefined && fault === undefined) return Effect.void
        writing = pending
        pending = new Batch()
      }
      const batch = writing
      return run((known) => write(known.writer, batch)).pipe(
        Effect.retry({ times: 1, while: (error) => error.kind === "corrupt" }),
        Effect.matchEffect({
          onFailure: failed,
          onSuccess: (leftOut) => Effect.andThen(noteLeftOut(leftOut), succeeded)
        })
      )
    })
  ).pipe(Effect.uninterruptible, writer.withPermit)

  /** Works on the file in steps; false if it is closed meanwhile. */
  const inSteps = Effect.fnUntraced(function*(work: (db: DatabaseSync) => Cooperative<void>) {
    const known = yield* writer.withPermit(connected)
    const steps = work(known.writer)
    /** Runs one step; true after the last one. */
    const step = Effect.try({ try: () => steps.next().done === true, catch: (error) => usageFileError(file, error) })
    // The permit is free between two steps, so that writes go on.
    for (;;) {
      const done = yield* writer.withPermit(
        Effect.suspend(() => connections === known ? step : Effect.succeed(true))
      )
      if (done) return connections === known
      yield* Effect.yieldNow
    }
  })

  const retention = makeRetention(keepDays, (now) =>
    Effect.gen(function*() {
      const held = yield* runCooperatively(hoursOf(unwritten(), now))
      const kept = yield* Effect.try({
        try: () => connections === undefined ? undefined : readHours(connections.reader, now),
        catch: (error) => usageFileError(file, error)
      })
      return kept === undefined ? held : {
        oldest: Math.min(held.oldest ?? Infinity, kept.oldest ?? Infinity),
        newest: [...held.newest, ...kept.newest]
      }
    }))

  /** Sums a day that is over; `undefined` after the last one. */
  const sumDay = (now: number) =>
    writer.withPermit(run(({ writer: db }) => sumNextDay(db, daysBeforeAt(now), now - hourLength)))

  const compact = Effect.gen(function*() {
    let removed = 0
    let before = 0
    const countRemoved = (count: number) => {
      removed += count
    }
    yield* Effect.gen(function*() {
      const now = yield* retention.now
      const cutoffs = yield* retention.cutoffs
      const first = yield* sessionsFrom(retention, sessionDays())
      // Unwritten batches of a file that cannot be written grow old too.
      before = cutoffs?.removedBefore ?? 0
      yield* writer.withPermit(Effect.forEach(unwritten(), (batch) =>
        Effect.andThen(
          runCooperatively(dropCounts(batch, now)),
          cutoffs === undefined ? Effect.void : Effect.map(runCooperatively(compactBatch(batch, cutoffs)), countRemoved)
        )))
      if (first !== undefined) yield* inSteps((db) => dropDatabaseSessions(db, first))
      yield* inSteps((db) => dropDatabaseCounts(db, now))
      if (
        cutoffs !== undefined && (yield* inSteps((db) => compactDatabase(db, cutoffs, compactedTo, countRemoved)))
      ) compactedTo = cutoffs.daysBefore
      while ((yield* sumDay(now)) !== undefined) yield* Effect.yieldNow
    }).pipe(
      // Another process locks the file for a moment each second.
      Effect.retry({ times: 20, schedule: Schedule.spaced("1 second"), while: (error) => error.kind === "busy" }),
      Effect.catch((error) =>
        error.kind === "busy" || error.message === fault
          ? Effect.void
          : Effect.logError(`Old usage cannot be compacted: ${error.message}`)
      )
    )
    yield* logRemoved(removed, usageEntries, before)
  })

  const answer = function*(
    db: DatabaseSync,
    query: UsageQuery,
    batches: ReadonlyArray<Batch>
  ): Cooperative<UsageReport> {
    const buckets = yield* orderedBuckets(query, ...batches)
    return yield* makeReport(query, merged(query, readPieces(db, query), buckets))
  }

  /** Begins a read of one moment: of the file, and of the batches that are unwritten then. */
  const begun = Effect.try({
    try: () => {
      const batches = unwritten()
      const db = connections?.open()
      try {
        db?.exec("BEGIN")
        db?.prepare("SELECT hour FROM usage LIMIT 1").get()
      } catch (error) {
        db?.close()
        throw error
      }
      return { db, batches }
    },
    catch: (error) => usageFileError(file, error)
  })

  const query = (asked: UsageQuery): Effect.Effect<UsageReport> =>
    Effect.andThen(
      Effect.suspend(() => connections?.lost() === undefined ? Effect.void : flush),
      Effect.acquireUseRelease(
        begun,
        ({ batches, db }) =>
          db === undefined
            ? runCooperatively(reportOf(asked, ...batches))
            : Effect.flatMap(runCooperatively(caught(file, answer(db, asked, batches))), Effect.fromResult),
        ({ db }) => Effect.sync(() => db?.close())
      )
    ).pipe(
      Effect.catch((error) =>
        Effect.andThen(
          failed(error),
          Effect.suspend(() => runCooperatively(reportOf(asked, ...unwritten())))
        )
      ),
      readers.withPermit
    )

  /** What a short read of the file returns; `undefined` while it cannot be read. */
  const readNow = <A>(read: (db: DatabaseSync) => A): A | undefined => {
    try {
      return connections && read(connections.reader)
    } catch (error) {
      usageFileError(file, error)
      return undefined
    }
  }

  const counters = (key: string, now: number) => {
    const inMemory = unwritten().map((batch) => batch.counters(key, now))
    const kept = readNow((db) => readCounters(db, key, now))
    return (kept === undefined ? inMemory : [...inMemory, kept]).reduce(addCounters)
  }

  yield* Effect.uninterruptible(writer.withPermit(connected)).pipe(
    Effect.catch((error) => {
      fault = error.message
      return Effect.logWarning(`Usage is kept in memory only: ${fault}`)
    })
  )
  yield* Effect.addFinalizer(() =>
    // The second flush writes the entries that came during the first.
    Effect.andThen(Effect.andThen(flush, flush), Effect.sync(close))
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(writeEvery), flush)))
  yield* compactHourly(compact)

  return {
    changes: yield* makeChangeHistory(keepDays, retention, changesInSqlite(file, connect)),
    add: (entry) => {
      pending.addCounts(entry)
      pending.addBucket(entry)
      pending.sessions.add(entry)
      const heldSessions = pending.sessions.size + (writing?.sessions.size ?? 0)
      // A batch that is being written stays as it is: its session has the oldest use, but may be in the file already.
      if (heldSessions > most) dropped += pending.sessions.takeOldest()?.buckets.size ?? 0
      const held = pending.buckets.size + (writing?.buckets.size ?? 0)
      if (held > most && (writing?.dropOldest() === true || pending.dropOldest())) dropped++
    },
    query,
    counters: (key, now) => Effect.sync(() => counters(key, now)),
    accounts: {
      count: (subject, at, tokens, cost) => pending.addUse(subject, at, tokens, cost),
      counters,
      changed: (account, read) => pending.accounts.set(account, read),
      states: (now) => Effect.sync(() => readNow((db) => readAccounts(db, now)) ?? new Map())
    },
    compact,
    status: Effect.sync(() => ({
      kind: connections === undefined && fault !== undefined ? "memory" as const : "sqlite" as const,
      persistent: fault === undefined,
      detail: detailOf(dropped, fault)
    }))
  }
})
