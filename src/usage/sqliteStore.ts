/**
 * Usage kept in a SQLite file. Requests are added up in memory and written once a second, off the request path; what cannot
 * be written stays in memory and is tried again. A file that is removed or replaced while it is open is opened anew, before
 * anything is written to one that has no name.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { DatabaseSync } from "node:sqlite"
import { inSlices } from "../config/inSlices.ts"
import type { Sliced } from "../domain/stream/slices.ts"
import { sliceItems } from "../domain/stream/steps.ts"
import { addCounters, Batch, type Bucket } from "./Batch.ts"
import { defaultKeepDays, detailOf, droppedDetail, mostBuckets, orderedBuckets, tidied } from "./memoryStore.ts"
import { type Connect, openSqlite, type SqliteConnections, type UsageFileError, usageFileError } from "./openSqlite.ts"
import { readCounters, readPieces, tidyDatabase, writeBatch } from "./sqliteFile.ts"
import { type Ages, agesAt, tidyHourly } from "./tidying.ts"
import { inPieces, makeReport, type Piece, timeOf, type UsageQuery, type UsageReport } from "./UsageQuery.ts"
import type { UsageStoreOptions, UsageStoreShape } from "./UsageStoreShape.ts"

/** How a store in a file is run. */
export interface SqliteOptions extends UsageStoreOptions {
  readonly file: string
  /** Buckets that wait in memory; `mostBuckets` unless given. */
  readonly most?: number | undefined
  /** Makes connections in the place of the runtime's own way. */
  readonly connect?: Connect | undefined
}

/** How often what is new is written. */
const writeEvery = "1 second"
/** Long reads that run at once; further ones wait. */
const mostReads = 4
/** Seconds that another process may keep the file before that is a fault to tell. */
const patience = 10

function* caught<A>(file: string, work: Sliced<A>): Sliced<Result.Result<A, UsageFileError>> {
  try {
    return Result.succeed(yield* work)
  } catch (error) {
    return Result.fail(usageFileError(file, error))
  }
}

/** What a piece of the file and the memory's buckets, which are in the order of their hours too, come to as one. */
function* merged(
  query: UsageQuery,
  pieces: Iterable<Piece>,
  memory: ReadonlyArray<Bucket>
): Generator<Piece> {
  let taken = 0
  for (const { buckets, looked } of pieces) {
    let out: Array<Bucket> = []
    for (const bucket of buckets) {
      while (taken < memory.length && timeOf(query.by, memory[taken]!.hour) < bucket.hour) {
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
): Effect.fn.Return<UsageStoreShape, never, FileSystem.FileSystem | Scope.Scope> {
  const { connect, file, keepDays = () => defaultKeepDays, most = mostBuckets } = options
  const fs = yield* FileSystem.FileSystem
  const open = Effect.provideService(openSqlite(file, connect), FileSystem.FileSystem, fs)
  let connections: SqliteConnections | undefined
  let pending = new Batch()
  /** What is being written, or could not be. */
  let writing: Batch | undefined
  /** What the file does not have yet. */
  const waiting = () => writing === undefined ? [pending] : [writing, pending]
  let dropped = 0
  let failures = 0
  let fault: string | undefined
  /** Hours before this are days already. */
  let rolledUpTo = 0
  const writer = yield* Semaphore.make(1)
  const readers = yield* Semaphore.make(mostReads)

  const well = Effect.suspend(() => {
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

  const close = () => {
    connections?.close()
    connections = undefined
  }

  /** The connections, opened anew where they had to be closed. For who holds the writer's permit. */
  const connected = Effect.suspend(() => {
    if (connections !== undefined) return Effect.succeed(connections)
    rolledUpTo = 0
    return Effect.map(open, (made) => {
      connections = made
      return made
    })
  })

  /** Lets go of a file that is not at its path any more. For who holds the writer's permit. */
  const letGo = Effect.suspend(() => {
    const what = connections?.lost()
    if (what === undefined) return Effect.void
    close()
    return Effect.logWarning(
      what === "removed"
        ? `${file} was removed while it was in use: a new history begins`
        : `${file} was replaced while it was in use: usage goes on in the file that is there now`
    )
  })

  const run = <A>(work: (connections: SqliteConnections) => Sliced<A>) =>
    Effect.flatMap(connected, (known) => Effect.flatMap(inSlices(caught(file, work(known))), Effect.fromResult)).pipe(
      // Opening a damaged file anew moves it aside. Waiting is all that helps where it is locked or its disk is full.
      Effect.tapError(({ kind }) => Effect.sync(() => kind === "busy" || kind === "full" ? undefined : close()))
    )

  function* write(db: DatabaseSync, batch: Batch): Sliced<void> {
    yield* writeBatch(db, batch)
    // Not a step later: a read in between would count the batch twice.
    writing = undefined
  }

  const flush = Effect.andThen(
    letGo,
    Effect.suspend(() => {
      if (writing === undefined) {
        // With nothing to write, a fault ends when the file can be written to.
        if (pending.isEmpty && connections !== undefined && fault === undefined) return Effect.void
        writing = pending
        pending = new Batch()
      }
      const batch = writing
      return run((known) => write(known.writer, batch)).pipe(
        Effect.retry({ times: 1, while: (error) => error.kind === "corrupt" }),
        Effect.matchEffect({ onFailure: failed, onSuccess: () => well })
      )
    })
  ).pipe(Effect.uninterruptible, writer.withPermit)

  const tidyFile = Effect.fnUntraced(function*(ages: Ages) {
    const known = yield* writer.withPermit(connected)
    const steps = tidyDatabase(known.writer, ages, rolledUpTo)
    /** True when there is nothing left to do. */
    const step = Effect.try({ try: () => steps.next().done === true, catch: (error) => usageFileError(file, error) })
    // What is new is written between the steps, however many there are.
    for (;;) {
      const done = yield* writer.withPermit(
        Effect.suspend(() => connections === known ? step : Effect.succeed(true))
      )
      if (done) break
      yield* Effect.yieldNow
    }
    if (connections === known) rolledUpTo = ages.daysBefore
  })

  const tidy = Effect.gen(function*() {
    const now = yield* Clock.currentTimeMillis
    // What waits for a file that cannot be written to grows old too.
    yield* writer.withPermit(Effect.forEach(waiting(), (batch) => inSlices(tidied(batch, now, keepDays()))))
    yield* tidyFile(agesAt(now, keepDays())).pipe(
      // Another process writes each second, and is done in a moment.
      Effect.retry({ times: 20, schedule: Schedule.spaced("1 second"), while: (error) => error.kind === "busy" }),
      Effect.catch((error) =>
        error.kind === "busy" || error.message === fault
          ? Effect.void
          : Effect.logError(`Usage cannot be tidied: ${error.message}`)
      )
    )
  })

  const memory = function*(query: UsageQuery, batches: ReadonlyArray<Batch>): Sliced<UsageReport> {
    return yield* makeReport(query, inPieces(yield* orderedBuckets(query, ...batches)))
  }

  const answer = function*(db: DatabaseSync, query: UsageQuery, batches: ReadonlyArray<Batch>): Sliced<UsageReport> {
    const buckets = yield* orderedBuckets(query, ...batches)
    return yield* makeReport(query, merged(query, readPieces(db, query), buckets))
  }

  /** A read of one moment: what is in the file, and what was not written then. */
  const begun = Effect.try({
    try: () => {
      const batches = waiting()
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
            ? inSlices(memory(asked, batches))
            : Effect.flatMap(inSlices(caught(file, answer(db, asked, batches))), Effect.fromResult),
        ({ db }) => Effect.sync(() => db?.close())
      )
    ).pipe(
      Effect.catch((error) =>
        Effect.andThen(
          failed(error),
          Effect.suspend(() => inSlices(memory(asked, waiting())))
        )
      ),
      readers.withPermit
    )

  const counters = (key: string, now: number) =>
    Effect.sync(() => {
      const inMemory = waiting().map((batch) => batch.counters(key, now))
      try {
        if (connections !== undefined) inMemory.push(readCounters(connections.reader, key, now))
      } catch (error) {
        usageFileError(file, error)
      }
      return inMemory.reduce(addCounters)
    })

  yield* Effect.uninterruptible(writer.withPermit(connected)).pipe(
    Effect.catch((error) => {
      fault = error.message
      return Effect.logWarning(`Usage is kept in memory only: ${fault}`)
    })
  )
  yield* Effect.addFinalizer(() =>
    // What came while the first was written is written too.
    Effect.andThen(Effect.andThen(flush, flush), Effect.sync(close))
  )
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(writeEvery), flush)))
  yield* tidyHourly(tidy)

  return {
    add: (entry) => {
      pending.addCounts(entry)
      pending.addBucket(entry)
      const held = pending.buckets.size + (writing?.buckets.size ?? 0)
      if (held > most && (writing?.dropOldest() === true || pending.dropOldest())) dropped++
    },
    query,
    counters,
    tidy,
    status: Effect.sync(() => ({
      kind: connections === undefined && fault !== undefined ? "memory" as const : "sqlite" as const,
      persistent: fault === undefined,
      detail: detailOf(fault, dropped === 0 ? undefined : droppedDetail(dropped))
    }))
  }
})
