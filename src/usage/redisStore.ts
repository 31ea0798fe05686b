/**
 * Usage in the store that nodes share: each node adds its own buckets once a second, and reads are of all nodes.
 *
 * The windows of keys are not this store's business: `KeyLimits.layerShared` counts them where it admits.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { randomBytes } from "node:crypto"
import { keepsData } from "../cluster/store/keepsData.ts"
import type { StoreShape } from "../cluster/store/Store.ts"
import { inSlices } from "../config/inSlices.ts"
import type { Sliced } from "../domain/stream/slices.ts"
import { Batch, type Bucket, countersAt, sumCounters } from "./Batch.ts"
import { defaultKeepDays, detailOf, droppedDetail, mostBuckets, orderedBuckets } from "./memoryStore.ts"
import { agesAt } from "./tidying.ts"
import { addErrors, addSums, dimensionNames, measureNames, zero } from "./UsageEntry.ts"
import { inPieces, makeReport, matches, sortSliced, timeOf, type UsageQuery, type UsageReport } from "./UsageQuery.ts"
import type { UsageStoreOptions, UsageStoreShape } from "./UsageStoreShape.ts"
import { dayOf, hourLength } from "./windows.ts"

/** How usage is kept in a store. */
export interface SharedUsageOptions extends UsageStoreOptions {
  /** False while no history is wanted; asked with each request. */
  readonly enabled?: (() => boolean) | undefined
}

const prefix = "gw:{main}:usage:"
const separator = "\u0000"
/** Buckets that one call tells of or reads. */
const atOnce = 500
/** Milliseconds between two looks at what has grown old, which one node does for all. */
const tidyEvery = hourLength

const notKept = "the shared store does not append to a file (appendonly no): usage is gone with its data"
const storeLost = "the shared store does not answer: what it has is missing here"

/** A bucket as it lies in the store. */
const readBucket = (hour: number, names: string, value: string): Bucket => {
  const [key = "", model = "", account = "", style = ""] = names.split(separator)
  const sums = zero()
  const words = value.split(" ")
  for (let i = 0; i < measureNames.length; i++) sums.values[i] = Number(words[i])
  for (const word of words.slice(measureNames.length)) {
    const equals = word.lastIndexOf("=")
    addErrors(sums, word.slice(0, equals), Number(word.slice(equals + 1)))
  }
  return { hour, key, model, account, style, sums }
}

const textOf = (bucket: Bucket): readonly [number, string, ReadonlyArray<number>, Record<string, number>] => [
  bucket.hour,
  dimensionNames.map((name) => bucket[name]).join(separator),
  bucket.sums.values,
  Object.fromEntries(bucket.sums.errors ?? [])
]

/** Adds buckets up to what is asked for, so that no more is kept than the rows that it may become. */
class Groups {
  readonly #query: UsageQuery
  readonly #groups = new Map<string, Bucket>()

  constructor(query: UsageQuery) {
    this.#query = query
  }

  add(bucket: Bucket): void {
    if (!matches(this.#query, bucket)) return
    const { by } = this.#query
    const names = dimensionNames.map((name) => by.includes(name) ? bucket[name] : "")
    const [key, model, account, style] = names as [string, string, string, string]
    const hour = timeOf(by, bucket.hour)
    const id = [hour, ...names].join(separator)
    const known = this.#groups.get(id)
    if (known !== undefined) return addSums(known.sums, bucket.sums)
    const sums = zero()
    addSums(sums, bucket.sums)
    this.#groups.set(id, { hour, key, model, account, style, sums })
  }

  *report(): Sliced<UsageReport> {
    const sorted = yield* sortSliced([...this.#groups.values()], (a, b) => a.hour - b.hour)
    return yield* makeReport(this.#query, inPieces(sorted))
  }
}

/** Makes the store of a node. */
export const makeRedisStore = Effect.fnUntraced(function*(
  store: Pick<StoreShape, "run" | "send" | "isUp">,
  options: SharedUsageOptions = {}
): Effect.fn.Return<UsageStoreShape, never, Scope.Scope> {
  const { enabled = () => true, keepDays = () => defaultKeepDays } = options
  const writer = yield* Semaphore.make(1)
  const instance = randomBytes(6).toString("base64url")
  let batches = 0
  let dropped = 0
  const pending = new Batch()
  /** What is being written: a list is told whole, under its id, until the store has heard it. */
  let writing: { readonly id: string; readonly buckets: ReadonlyArray<Bucket> } | undefined
  let fault: string | undefined

  const next = () => {
    const buckets = Array.from(pending.buckets).slice(0, atOnce)
    for (const [id] of buckets) pending.buckets.delete(id)
    return { id: `${instance}${++batches}`, buckets: buckets.map(([, bucket]) => bucket) }
  }

  /** Writes what there is; whether all of it was written. */
  const flush: Effect.Effect<boolean> = Effect.gen(function*() {
    while (writing !== undefined || pending.buckets.size > 0) {
      writing ??= next()
      const { buckets, id } = writing
      yield* store.run("usage", "add", id, JSON.stringify(buckets.map(textOf)))
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

  /** Every bucket of an hour, once. */
  const readHour = Effect.fnUntraced(function*(hour: number, groups: Groups) {
    const seen = new Set<string>()
    let cursor = "0"
    do {
      const reply: unknown = yield* store.send("HSCAN", `${prefix}h:${hour}`, cursor, "COUNT", String(atOnce))
      const [following, fields] = Array.isArray(reply) ? reply : ["0", []]
      const texts = listed(fields)
      for (let i = 0; i + 1 < texts.length; i += 2) {
        if (seen.has(texts[i]!)) continue
        seen.add(texts[i]!)
        groups.add(readBucket(hour, texts[i]!, texts[i + 1]!))
      }
      cursor = String(following)
    } while (cursor !== "0")
  })

  /** What is not written. */
  const own = (query: UsageQuery) =>
    Effect.suspend(() => {
      const unwritten = new Batch()
      for (const bucket of writing?.buckets ?? []) {
        unwritten.buckets.set(textOf(bucket).slice(0, 2).join(separator), bucket)
      }
      return inSlices(orderedBuckets(query, unwritten, pending))
    })

  const query = Effect.fnUntraced(function*(asked: UsageQuery) {
    const groups = new Groups(asked)
    const read = Effect.flatMap(
      hoursFrom(asked.from, asked.to),
      (hours) => Effect.forEach(hours, (hour) => readHour(hour, groups), { discard: true })
    )
    yield* flush.pipe(
      // What may be written or not is counted once: here.
      Effect.flatMap((isWritten) => isWritten ? read : Effect.void),
      Effect.catch(() =>
        Effect.sync(() => {
          fault = storeLost
        })
      ),
      Effect.andThen(own(asked)),
      Effect.map((buckets) => {
        for (const bucket of buckets) groups.add(bucket)
      }),
      writer.withPermit
    )
    return yield* inSlices(groups.report())
  })

  /** Makes days of old hours and removes old days. */
  const tidy = Effect.gen(function*() {
    const { daysBefore, goneBefore } = agesAt(yield* Clock.currentTimeMillis, keepDays())
    for (const hour of yield* hoursFrom("-inf", goneBefore)) {
      yield* store.run("usage", "drop", String(hour))
    }
    for (const hour of yield* hoursFrom(goneBefore, daysBefore)) {
      const day = dayOf(hour)
      while (day !== hour) {
        const [, left] = yield* store.run("usage", "fold", String(hour), String(day))
        if (left === "0") break
      }
    }
  }).pipe(Effect.ignore)

  /** One node tidies for all. */
  const tidyInTurn = Effect.flatMap(
    Effect.option(store.send("SET", `${prefix}tidy`, instance, "NX", "PX", String(tidyEvery))),
    (reply) => reply._tag === "Some" && reply.value === "OK" ? tidy : Effect.void
  )

  const flushInTurn = Effect.suspend(() => store.isUp() ? Effect.asVoid(writer.withPermit(flush)) : Effect.void)
  yield* Effect.addFinalizer(() => flushInTurn)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep("1 second"), flushInTurn)))
  // A node that asks more often than there is something to do finds the turn taken.
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(tidyInTurn, Effect.sleep("5 minutes"))))

  return {
    add: (entry) => {
      if (!enabled()) return
      pending.addBucket(entry)
      if (pending.buckets.size > mostBuckets && pending.dropOldest()) dropped++
    },
    query: (asked) =>
      Effect.suspend(() => enabled() ? query(asked) : Effect.succeed({ rows: [], totals: zero(), truncated: false })),
    counters: (_, now) => Effect.succeed(sumCounters(countersAt(now), [], undefined)),
    tidy,
    status: Effect.map(keepsData(store), (persistent) =>
      enabled()
        ? {
          kind: "redis" as const,
          persistent,
          detail: detailOf(
            fault ?? (persistent ? undefined : notKept),
            dropped === 0 ? undefined : droppedDetail(dropped)
          )
        }
        : { kind: "off" as const, persistent: false, detail: null })
  }
})
