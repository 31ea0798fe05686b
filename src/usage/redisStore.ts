/**
 * Usage in the store that nodes share: each node writes its buckets once a second, and reads cover all nodes.
 *
 * Days that are over are summed once by each dimension. What is added to such a day later discards its sums until the next compaction.
 *
 * `KeyLimits.layerShared` counts the windows of keys itself.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { randomBytes } from "node:crypto"
import type { Encryption } from "../cluster/store/encryption.ts"
import type { StoreShape } from "../cluster/store/Store.ts"
import { isPersistent } from "../cluster/store/StoreShape.ts"
import { runCooperatively } from "../config/clock/cooperative.ts"
import type { Cooperative } from "../domain/stream/cooperative.ts"
import { Batch, type Bucket, bucketId, countersAt, type SessionUsage, sumCounters } from "./Batch.ts"
import { makeChangeHistory } from "./changes.ts"
import { changesInRedis } from "./changesInRedis.ts"
import { orderedBuckets } from "./memoryStore.ts"
import { readBucket, readDay, readSessionBucket, separator, sumsText, textOf, textsOf } from "./redisTexts.ts"
import {
  confirming,
  daysBeforeAt,
  defaultKeepDays,
  defaultSessionDays,
  logRemoved,
  makeRetention,
  sessionsFrom,
  usageEntries
} from "./retention.ts"
import { addSums, type DimensionName, dimensionsBy, historyNames, type Sums, zero } from "./UsageEntry.ts"
import {
  asksSessions,
  dayDimension,
  inPieces,
  makeReport,
  matches,
  reads,
  sortSliced,
  timeRead,
  type UsageQuery,
  type UsageReport
} from "./UsageQuery.ts"
import {
  detailOf,
  maxBuckets,
  mostSessionRows,
  mostSessionsKept,
  type UsageStoreOptions,
  type UsageStoreShape
} from "./UsageStoreShape.ts"
import { dayLength, dayOf, hourLength } from "./windows.ts"

/** Options of a store that nodes share. */
interface SharedUsageOptions extends UsageStoreOptions {
  /** Whether a history is kept; read with each request. */
  readonly enabled?: (() => boolean) | undefined
}

const prefix = "gw:{main}:usage:"
/** Buckets that one call writes or reads. */
const perCall = 500
/** Hours and sessions that are read together. */
const readsAtOnce = 16
/** How long a key's use of its windows is kept after its last request: longer than any window. */
const windowsKept = 400 * dayLength
/** Milliseconds between two compactions, each of which one node does for all. */
const compactEvery = hourLength

const notKept = "the shared store keeps no append-only file (appendonly no): usage is lost with its data"
const storeLost = "the shared store does not answer: its usage is missing here"

/** Sums buckets by the row that they belong to: memory is bounded by the rows. */
class Groups {
  readonly #query: UsageQuery
  readonly #groups = new Map<string, Bucket>()

  constructor(query: UsageQuery) {
    this.#query = query
  }

  add(bucket: Bucket): void {
    if (!matches(this.#query, bucket)) return
    const names = dimensionsBy((name) => reads(this.#query, name) ? bucket[name] : "")
    const hour = timeRead(this.#query, bucket.hour)
    const id = bucketId(hour, names)
    const known = this.#groups.get(id)
    if (known !== undefined) return addSums(known.sums, bucket.sums)
    const sums = zero()
    addSums(sums, bucket.sums)
    this.#groups.set(id, { hour, ...names, sums })
  }

  *report(): Cooperative<UsageReport> {
    const sorted = yield* sortSliced([...this.#groups.values()], (a, b) => a.hour - b.hour)
    return yield* makeReport(this.#query, inPieces(sorted))
  }
}

/** Makes the store of a node. */
export const makeRedisStore = Effect.fnUntraced(function*(
  store: Pick<StoreShape, "run" | "send" | "isUp" | "clockOffset"> & {
    readonly secrets: Pick<Encryption, "seal" | "open">
  },
  options: SharedUsageOptions = {}
): Effect.fn.Return<Required<Omit<UsageStoreShape, "accounts">>, never, Scope.Scope> {
  const {
    enabled = () => true,
    keepDays = () => defaultKeepDays,
    mostSessions = mostSessionsKept,
    sessionDays = () => defaultSessionDays
  } = options
  const writer = yield* Semaphore.make(1)
  const instance = randomBytes(6).toString("base64url")
  let batches = 0
  let dropped = 0
  const pending = new Batch()
  /** The list that is being written: sent unchanged, under its id, until the store acknowledges it. */
  let writing:
    | { readonly id: string; readonly buckets: ReadonlyArray<Bucket>; readonly sessions: ReadonlyArray<SessionUsage> }
    | undefined
  let fault: string | undefined

  const next = () => {
    const buckets = Array.from(pending.buckets).slice(0, perCall)
    for (const [id] of buckets) pending.buckets.delete(id)
    return {
      id: `${instance}${++batches}`,
      buckets: buckets.map(([, bucket]) => bucket),
      sessions: pending.sessions.take(perCall)
    }
  }

  /** Writes all buckets; whether that succeeded. */
  const flush: Effect.Effect<boolean> = Effect.gen(function*() {
    while (writing !== undefined || pending.buckets.size > 0 || pending.sessions.size > 0) {
      writing ??= next()
      const { buckets, id, sessions } = writing
      const texts = JSON.stringify([...buckets.map(textOf), ...sessions.flatMap(textsOf)])
      yield* store.run("usage", "add", id, texts, String(mostSessions), String(mostSessionRows))
      writing = undefined
    }
    fault = undefined
    return true
  }).pipe(
    Effect.catch(() =>
      Effect.sync(() => {
        fault = storeLost
        return false
      })
    ),
    Effect.uninterruptible
  )

  const listed = (reply: unknown): ReadonlyArray<string> => Array.isArray(reply) ? reply.map(String) : []

  const hoursFrom = (from: number | "-inf", to: number) =>
    Effect.map(
      store.send("ZRANGEBYSCORE", `${prefix}hours`, String(from), `(${to}`),
      (reply) => listed(reply).map(Number)
    )

  /** Reads the fields of a hash; a scan may return one twice. */
  const readHash = Effect.fnUntraced(
    function*(hash: string, read: (names: string, value: string) => void) {
      const seen = new Set<string>()
      let cursor = "0"
      do {
        const reply: unknown = yield* store.send("HSCAN", `${prefix}${hash}`, cursor, "COUNT", String(perCall))
        const [following, fields] = Array.isArray(reply) ? reply : ["0", []]
        const texts = listed(fields)
        for (let i = 0; i + 1 < texts.length; i += 2) {
          if (seen.has(texts[i]!)) continue
          seen.add(texts[i]!)
          read(texts[i]!, texts[i + 1]!)
        }
        cursor = String(following)
      } while (cursor !== "0")
    }
  )

  /** Reads the buckets of some hours. */
  const readHours = (hours: ReadonlyArray<number>, add: (bucket: Bucket) => void) =>
    Effect.forEach(
      hours,
      (hour) => readHash(`h:${hour}`, (names, value) => add(readBucket(hour, names, value))),
      { concurrency: readsAtOnce, discard: true }
    )

  /** The days from one time up to another that are summed. */
  const summedDays = (from: number, to: number) =>
    Effect.map(
      store.send("ZRANGEBYSCORE", `${prefix}days`, String(from), String(to - dayLength)),
      (reply) => listed(reply).map(Number)
    )

  const readHistory = Effect.fnUntraced(function*(query: UsageQuery, groups: Groups) {
    const { from, to } = query
    const of = dayDimension(query)
    const days = of === undefined ? [] : (yield* summedDays(from, to)).map((day) => [day, of] as const)
    yield* Effect.forEach(
      days,
      ([day, name]) => readHash(`d:${day}:${name}`, (value, sums) => groups.add(readDay(day, name, value, sums))),
      { concurrency: readsAtOnce, discard: true }
    )
    const summed = new Set(days.map(([day]) => day))
    const hours = yield* hoursFrom(from, to)
    yield* readHours(hours.filter((hour) => !summed.has(dayOf(hour))), (bucket) => groups.add(bucket))
  })

  /** Reads the sessions that were used since the query's beginning, of its keys alone. */
  const readSessions = Effect.fnUntraced(function*({ from, only }: UsageQuery, groups: Groups) {
    const members = listed(yield* store.send("ZRANGEBYSCORE", `${prefix}sessions`, String(from), "+inf"))
    yield* Effect.forEach(members, (member) => {
      const [key = "", session = ""] = member.split(separator)
      return only.key?.has(key) === false || only.session?.has(session) === false
        ? Effect.void
        : readHash(`s:${member}`, (names, value) => groups.add(readSessionBucket(key, session, names, value)))
    }, { concurrency: readsAtOnce, discard: true })
  })

  /** The buckets that are not written. */
  const ownBuckets = (query: UsageQuery) =>
    Effect.suspend(() => {
      const unwritten = new Batch()
      for (const bucket of writing?.buckets ?? []) {
        unwritten.buckets.set(bucketId(bucket.hour, bucket), bucket)
      }
      const sessions = asksSessions(query)
        ? (writing?.sessions ?? []).flatMap(({ buckets }) => [...buckets.values()])
        : []
      return Effect.map(
        runCooperatively(orderedBuckets(query, unwritten, pending)),
        (buckets) => [...sessions, ...buckets]
      )
    })

  const query = Effect.fnUntraced(function*(asked: UsageQuery) {
    const groups = new Groups(asked)
    const read = asksSessions(asked) ? readSessions(asked, groups) : readHistory(asked, groups)
    yield* flush.pipe(
      // After a failed write the same buckets may be in the store too: they are counted from here alone.
      Effect.flatMap((isWritten) => isWritten ? read : Effect.void),
      Effect.catch(() =>
        Effect.sync(() => {
          fault = storeLost
        })
      ),
      Effect.andThen(ownBuckets(asked)),
      Effect.map((buckets) => {
        for (const bucket of buckets) groups.add(bucket)
      }),
      writer.withPermit
    )
    return yield* runCooperatively(groups.report())
  })

  const retention = makeRetention(
    keepDays,
    Effect.fnUntraced(function*(now) {
      const [oldest] = listed(yield* store.send("ZRANGE", `${prefix}hours`, "0", "0")).map(Number)
      // One of the two clocks is wrong, and nothing shows which one.
      if (Math.abs(store.clockOffset()) > dayLength) return { oldest, newest: [] }
      return { oldest, newest: yield* hoursFrom(now - confirming.within, now + 1) }
    }),
    Effect.map(Clock.currentTimeMillis, (now) => now + store.clockOffset())
  )

  /** Merges old hours into days, and removes old days and the limits of keys that are no longer used. */
  const tidy = Effect.gen(function*() {
    const first = yield* sessionsFrom(retention, sessionDays())
    while (first !== undefined && (yield* store.run("usage", "age", String(first)))[1] !== "0") continue
    const cutoffs = yield* retention.cutoffs
    if (cutoffs === undefined) return
    const { daysBefore, removedBefore } = cutoffs
    let removed = 0
    while ((yield* store.run("usage", "unsum", String(daysBefore)))[1] !== "0") continue
    yield* Effect.gen(function*() {
      for (const hour of yield* hoursFrom("-inf", removedBefore)) {
        const [, buckets = "0"] = yield* store.run("usage", "drop", String(hour))
        removed += Number(buckets)
      }
    }).pipe(Effect.ensuring(Effect.suspend(() => logRemoved(removed, usageEntries, removedBefore))))
    const unusedBefore = (yield* retention.now) - windowsKept
    while ((yield* store.run("usage", "forget", String(unusedBefore)))[1] !== "0") continue
    for (const hour of yield* hoursFrom(removedBefore, daysBefore)) {
      const day = dayOf(hour)
      while (day !== hour) {
        const [, left] = yield* store.run("usage", "fold", String(hour), String(day))
        if (left === "0") break
      }
    }
  })

  /** Sums a day by each dimension; memory is bounded by their values. A day that changes meanwhile is left to the next compaction. */
  const sumDay = Effect.fnUntraced(function*(day: number) {
    const turn = `${instance}${++batches}`
    yield* store.run("usage", "begin", String(day), turn)
    const sums = new Map(historyNames.map((name) => [name, new Map<string, Sums>()]))
    yield* readHours(yield* hoursFrom(day, day + dayLength), (bucket) => {
      for (const [name, values] of sums) {
        const value = values.get(bucket[name]) ?? zero()
        addSums(value, bucket.sums)
        values.set(bucket[name], value)
      }
    })
    const fields = Array.from(sums).flatMap(([name, values]) =>
      Array.from(values, ([value, each]): readonly [DimensionName, string, string] => [name, value, sumsText(each)])
    )
    for (let from = 0; from < fields.length; from += perCall) {
      const some = fields.slice(from, from + perCall)
      const isLast = from + perCall >= fields.length
      const [, taken] = yield* store.run("usage", "sum", String(day), turn, JSON.stringify(some), isLast ? "1" : "0")
      if (taken === "0") return
    }
  })

  /** Sums the days that are over. */
  const sumDays = Effect.gen(function*() {
    const now = yield* retention.now
    // A request may end after the day in which it began.
    const [from, to] = [daysBeforeAt(now), dayOf(now - hourLength)]
    const summed = new Set(yield* summedDays(from, to))
    for (const day of new Set(Array.from(yield* hoursFrom(from, to), dayOf))) {
      if (!summed.has(day)) yield* sumDay(day)
    }
  })

  const compact = Effect.ignore(Effect.andThen(tidy, sumDays))

  /** One node compacts for all. */
  const compactInTurn = Effect.flatMap(
    Effect.option(store.send("SET", `${prefix}tidy`, instance, "NX", "PX", String(compactEvery))),
    (reply) => reply._tag === "Some" && reply.value === "OK" ? compact : Effect.void
  )

  const flushInTurn = Effect.suspend(() => store.isUp() ? Effect.asVoid(writer.withPermit(flush)) : Effect.void)
  yield* Effect.addFinalizer(() => flushInTurn)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("1 second"), flushInTurn)))
  // Most of these find that another node has compacted within `compactEvery`.
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(compactInTurn, Effect.sleep("5 minutes"))))

  return {
    changes: yield* makeChangeHistory(keepDays, retention, changesInRedis(store)),
    add: (entry) => {
      if (!enabled()) return
      pending.addBucket(entry)
      if (pending.buckets.size > maxBuckets && pending.dropOldest()) dropped++
      pending.sessions.add(entry)
      if (pending.sessions.size > maxBuckets) dropped += pending.sessions.takeOldest()?.buckets.size ?? 0
    },
    query: (asked) =>
      Effect.suspend(() => enabled() ? query(asked) : Effect.succeed({ rows: [], totals: zero(), truncated: false })),
    counters: (_, now) => Effect.succeed(sumCounters(countersAt(now), [], undefined)),
    compact,
    status: Effect.map(isPersistent(store), (persistent) =>
      enabled()
        ? {
          kind: "redis" as const,
          persistent,
          detail: detailOf(dropped, fault ?? (persistent ? undefined : notKept))
        }
        : { kind: "off" as const, persistent: false, detail: null })
  }
})
