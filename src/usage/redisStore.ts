/**
 * Usage in the store that nodes share: each node writes its buckets once a second, and reads cover all nodes.
 *
 * A bucket's name leaves the app `none` out, and then its upstream and target where they follow from its model. So it is the name that
 * versions without apps or without several upstreams read and write; they read the beginning of a longer name.
 *
 * A bucket's value is its sums, without trailing zeros of costs and later sums, then its errors as `<code>=<count>`, and its times, whose
 * places stand for codes: no code begins with a digit.
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
import {
  confirming,
  defaultKeepDays,
  defaultSessionDays,
  logRemoved,
  makeRetention,
  sessionsFrom,
  usageEntries
} from "./retention.ts"
import { addTimesText } from "./Times.ts"
import {
  addErrors,
  addSums,
  cacheNames,
  dimensionsBy,
  laterNames,
  measureNames,
  none,
  onlyTarget,
  sumNames,
  type Sums,
  zero
} from "./UsageEntry.ts"
import {
  asksSessions,
  inPieces,
  makeReport,
  matches,
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
const separator = "\u0000"
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

/** Reads a bucket of the store. */
const readBucket = (hour: number, names: string, value: string): Bucket => {
  const [key = "", model = "", account = "", style = "", upstream, target = "", app = none] = names.split(separator)
  return {
    hour,
    key,
    model,
    account,
    style,
    ...(upstream === undefined ? onlyTarget(model) : { upstream, target }),
    app,
    session: "",
    agent: "",
    parent: "",
    sums: readSums(value)
  }
}

/** Reads a bucket of a session in the store: its name is its hour, app, agent and parent. */
const readSessionBucket = (key: string, session: string, names: string, value: string): Bucket => {
  const [hour, app = none, agent = none, parent = none] = names.split(separator)
  return {
    hour: Number(hour),
    key,
    model: "",
    account: "",
    style: "",
    upstream: "",
    target: "",
    app,
    session,
    agent,
    parent,
    sums: readSums(value)
  }
}

const isPlace = (word: string): boolean => word >= "0" && word < ":"

const readSums = (value: string): Sums => {
  const sums = zero()
  const words = value.split(" ")
  words.forEach((word, i) => {
    const equals = word.lastIndexOf("=")
    if (equals !== -1 && isPlace(word)) addTimesText(sums.times ??= new Map(), word)
    else if (equals !== -1) addErrors(sums, word.slice(0, equals), Number(word.slice(equals + 1)))
    else if (i < sumNames.length) sums.values[i] = Number(word)
  })
  return sums
}

const nameOf = ({ account, app, key, model, style, target, upstream }: Bucket): string => {
  const only = onlyTarget(model)
  const own = [key, model, account, style]
  if (app !== none) return [...own, upstream, target, app].join(separator)
  return (target === only.target && upstream === only.upstream ? own : [...own, upstream, target]).join(separator)
}

/** The sums of a bucket end before the costs, the later sums or those of caches, if all that follow are 0: as in versions without those. */
const written = (values: ReadonlyArray<number>): ReadonlyArray<number> => {
  const withLater = sumNames.length - cacheNames.length
  const end = [measureNames.length, withLater - laterNames.length, withLater]
    .find((end) => values.slice(end).every((value) => value === 0))
  return end === undefined ? values : values.slice(0, end)
}

/** The errors by code, and the times by place. */
const countsOf = ({ errors, times }: Sums): Record<string, number> =>
  Object.fromEntries([...errors ?? [], ...times ?? []])

const textOf = (bucket: Bucket): readonly [number, string, ReadonlyArray<number>, Record<string, number>] => [
  bucket.hour,
  nameOf(bucket),
  written(bucket.sums.values),
  countsOf(bucket.sums)
]

const sessionId = ({ key, session }: Pick<SessionUsage, "key" | "session">): string => key + separator + session

/** The buckets of a session as `usage.lua` reads them: also the name that is used once the session has too many buckets. */
const textsOf = (usage: SessionUsage): ReadonlyArray<ReadonlyArray<unknown>> =>
  Array.from(usage.buckets.values(), ({ agent, app, hour, parent, sums }) => [
    hour,
    [hour, app, agent, parent].join(separator),
    written(sums.values),
    countsOf(sums),
    sessionId(usage),
    usage.at,
    [hour, app, none, none].join(separator)
  ])

/** Sums buckets by the row that they belong to: memory is bounded by the rows. */
class Groups {
  readonly #query: UsageQuery
  readonly #groups = new Map<string, Bucket>()

  constructor(query: UsageQuery) {
    this.#query = query
  }

  add(bucket: Bucket): void {
    if (!matches(this.#query, bucket)) return
    const { by } = this.#query
    const names = dimensionsBy((name) => by.includes(name) ? bucket[name] : "")
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

  /** Reads the buckets of a hash; a scan may return one twice. */
  const readHash = Effect.fnUntraced(
    function*(hash: string, groups: Groups, read: (names: string, value: string) => Bucket) {
      const seen = new Set<string>()
      let cursor = "0"
      do {
        const reply: unknown = yield* store.send("HSCAN", `${prefix}${hash}`, cursor, "COUNT", String(perCall))
        const [following, fields] = Array.isArray(reply) ? reply : ["0", []]
        const texts = listed(fields)
        for (let i = 0; i + 1 < texts.length; i += 2) {
          if (seen.has(texts[i]!)) continue
          seen.add(texts[i]!)
          groups.add(read(texts[i]!, texts[i + 1]!))
        }
        cursor = String(following)
      } while (cursor !== "0")
    }
  )

  const readHistory = ({ from, to }: UsageQuery, groups: Groups) =>
    Effect.flatMap(hoursFrom(from, to), (hours) =>
      Effect.forEach(
        hours,
        (hour) => readHash(`h:${hour}`, groups, (names, value) => readBucket(hour, names, value)),
        { concurrency: readsAtOnce, discard: true }
      ))

  /** Reads the sessions that were used since the query's beginning, of its keys alone. */
  const readSessions = Effect.fnUntraced(function*({ from, only }: UsageQuery, groups: Groups) {
    const members = listed(yield* store.send("ZRANGEBYSCORE", `${prefix}sessions`, String(from), "+inf"))
    yield* Effect.forEach(members, (member) => {
      const [key = "", session = ""] = member.split(separator)
      return only.key?.has(key) === false || only.session?.has(session) === false
        ? Effect.void
        : readHash(`s:${member}`, groups, (names, value) => readSessionBucket(key, session, names, value))
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
  const compact = Effect.gen(function*() {
    const first = yield* sessionsFrom(retention, sessionDays())
    while (first !== undefined && (yield* store.run("usage", "age", String(first)))[1] !== "0") continue
    const cutoffs = yield* retention.cutoffs
    if (cutoffs === undefined) return
    const { daysBefore, removedBefore } = cutoffs
    let removed = 0
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
  }).pipe(Effect.ignore)

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
