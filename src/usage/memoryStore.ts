/**
 * Usage kept in memory.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { runCooperatively } from "../config/clock/cooperative.ts"
import { type Cooperative, eachCooperatively } from "../domain/stream/cooperative.ts"
import { Batch, type Bucket } from "./Batch.ts"
import { makeChangeHistory } from "./changes.ts"
import {
  compactBatch,
  compactHourly,
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
  asksSessions,
  inPieces,
  makeReport,
  matches,
  sortSliced,
  unitRead,
  type UsageQuery,
  type UsageReport
} from "./UsageQuery.ts"
import {
  detailOf,
  maxBuckets,
  mostSessionsKept,
  type UsageStoreOptions,
  type UsageStoreShape
} from "./UsageStoreShape.ts"

interface MemoryOptions extends UsageStoreOptions {
  /** False to count only what limits need. */
  readonly history?: boolean | undefined
  /** Why usage is in memory, for `status`. */
  readonly detail?: string | undefined
}

/** The buckets that match a query, in the order of their hours where its rows are of times. */
export function* orderedBuckets(
  query: UsageQuery,
  ...batches: ReadonlyArray<Batch>
): Cooperative<ReadonlyArray<Bucket>> {
  const found: Array<Bucket> = []
  for (const batch of batches) {
    const buckets = asksSessions(query) ? batch.sessions.buckets() : batch.buckets.values()
    yield* eachCooperatively([...buckets], (bucket) => {
      if (matches(query, bucket)) found.push(bucket)
    })
  }
  return unitRead(query) === undefined ? found : yield* sortSliced(found, (a, b) => a.hour - b.hour)
}

/** Answers a query from batches in memory. */
export function* reportOf(query: UsageQuery, ...batches: ReadonlyArray<Batch>): Cooperative<UsageReport> {
  return yield* makeReport(query, inPieces(yield* orderedBuckets(query, ...batches)))
}

/** Makes a store in memory. */
export const makeMemoryStore = Effect.fnUntraced(function*(
  options: MemoryOptions = {}
): Effect.fn.Return<Required<UsageStoreShape>, never, Scope.Scope> {
  const {
    history = true,
    keepDays = () => defaultKeepDays,
    mostSessions = mostSessionsKept,
    sessionDays = () => defaultSessionDays
  } = options
  const batch = new Batch()
  let dropped = 0
  const retention = makeRetention(keepDays, (now) => runCooperatively(hoursOf([batch], now)))
  const compact = Effect.gen(function*() {
    yield* runCooperatively(dropCounts(batch, yield* retention.now))
    const first = yield* sessionsFrom(retention, sessionDays())
    if (first !== undefined) yield* runCooperatively(batch.sessions.removeBefore(first))
    const cutoffs = yield* retention.cutoffs
    if (cutoffs === undefined) return
    yield* logRemoved(yield* runCooperatively(compactBatch(batch, cutoffs)), usageEntries, cutoffs.removedBefore)
  })
  yield* compactHourly(compact)
  return {
    changes: yield* makeChangeHistory(keepDays, retention),
    accounts: {
      count: (subject, at, tokens, cost) => batch.addUse(subject, at, tokens, cost),
      counters: (subject, now) => batch.counters(subject, now),
      changed: () => undefined,
      states: () => Effect.succeed(new Map())
    },
    add: (entry) => {
      batch.addCounts(entry)
      if (!history) return
      batch.addBucket(entry)
      if (batch.buckets.size > maxBuckets && batch.dropOldest()) dropped++
      batch.sessions.add(entry)
      // A session has at least one bucket, so this bounds the sessions too.
      if (batch.sessions.size > mostSessions) batch.sessions.takeOldest()
    },
    query: (query) => Effect.suspend(() => runCooperatively(reportOf(query, batch))),
    counters: (key, now) => Effect.sync(() => batch.counters(key, now)),
    compact,
    status: Effect.sync(() => ({
      kind: history ? "memory" as const : "off" as const,
      persistent: false,
      detail: detailOf(dropped, options.detail)
    }))
  }
})
