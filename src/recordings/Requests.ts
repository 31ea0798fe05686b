/**
 * Request records: a bounded ring of callers, bytes of both sides, and outcomes. Refused requests get a share of the ring, so
 * that unauthenticated callers cannot evict all other records. While records are off, nothing is recorded.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { findAccount } from "../config/Account.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { monotonicMillis } from "../domain/time.ts"
import { MemoryBudget } from "./MemoryBudget.ts"
import { Spares } from "./RecordedBytes.ts"
import type { RequestHead } from "./redactRound.ts"
import type { RequestFacts } from "./RequestFacts.ts"
import { RequestRecord } from "./RequestRecord.ts"

/** Divisor of the ring's size: refused requests may have a quarter of a full ring. */
const refusedShare = 4

/** Called for every change. Must be cheap and must not throw. */
type RecordListener = (record: RequestRecord) => void

/** Changes after a known one. */
interface MissedChanges {
  /** The changed records, last change first. */
  readonly records: ReadonlyArray<RequestRecord>
  /** Changed records have left the ring: the reader has to reload the list. */
  readonly gap: boolean
}

export class Requests extends Context.Service<Requests, {
  /**
   * Starts the record of an authenticated request; `undefined` while records are off. `facts` may change while the request
   * runs; `secret` is the caller's credential, which is redacted.
   */
  readonly begin: (request: {
    readonly facts: RequestFacts
    readonly key: string
    readonly head: () => RequestHead
    readonly secret: string
  }) => RequestRecord | undefined
  /** Records older than the one with the number `before`, newest first. */
  readonly older: (before: number | undefined) => ReadonlyArray<RequestRecord>
  /** The record with this number. */
  readonly numbered: (number: number) => RequestRecord | undefined
  /** The newest record with this request id. */
  readonly named: (requestId: string) => RequestRecord | undefined
  /** Removes all finished records. */
  readonly clear: () => void
  readonly status: () => { readonly kept: number; readonly bytes: number }
  /** Calls `listener` for every change until the returned function is called. */
  readonly listen: (listener: RecordListener) => () => void
  /** The number of changes so far. */
  readonly changes: () => number
  /** The changes after this number of changes. */
  readonly since: (changes: number) => MissedChanges
}>()("model-gateway/requests/Requests") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    const clock = yield* Clock.Clock
    const settings = () => config.now().requests
    const budget = new MemoryBudget(() => settings().max_total_bytes)
    /** All records, in the order in which they started. */
    const all = new Map<number, RequestRecord>()
    /** Finished records in the order in which they finished; refused ones are kept separately. */
    const over = new Set<RequestRecord>()
    const refused = new Set<RequestRecord>()
    const listeners = new Set<RecordListener>()
    let made = 0
    let changes = 0
    /** The last change of a removed record. */
    let lost = 0

    const touched = (record: RequestRecord) => {
      if (!all.has(record.number)) return
      record.changed = ++changes
      if (record.endedAt !== undefined) (record.isRefused ? refused : over).add(record)
      for (const listener of listeners) listener(record)
    }

    const home = {
      budget,
      spares: new Spares(),
      mostBytes: () => {
        const { bodies, max_body_bytes } = settings()
        return bodies ? max_body_bytes : 0
      },
      accountOf: (name: string) => findAccount(config.now().account_table, name),
      now: () => monotonicMillis(clock),
      touched
    }

    const forget = (record: RequestRecord) => {
      all.delete(record.number)
      over.delete(record)
      refused.delete(record)
      lost = Math.max(lost, record.changed)
      record.forgetBodies()
    }

    /** Removes refused records beyond their share first, then other finished ones, oldest first. */
    const trim = () => {
      const { limit } = settings()
      while (all.size > limit) {
        const [first = undefined] = refused.size > limit / refusedShare || over.size === 0 ? refused : over
        forget(first ?? all.values().next().value!)
      }
      budget.trim()
    }

    return Requests.of({
      begin({ facts, head, key, secret }) {
        if (!settings().enabled) return undefined
        const startedAt = clock.currentTimeMillisUnsafe()
        const record = new RequestRecord(home, { number: ++made, startedAt, facts, key, head: head(), secret })
        all.set(record.number, record)
        trim()
        touched(record)
        return record
      },
      older(before = Infinity) {
        trim()
        return [...all.values()].filter(({ number }) => number < before).reverse()
      },
      numbered: (number) => all.get(number),
      named: (requestId) => [...all.values()].findLast((record) => record.facts.id === requestId),
      clear() {
        for (const record of [...over, ...refused]) forget(record)
      },
      status() {
        trim()
        return { kept: all.size, bytes: budget.held }
      },
      listen(listener) {
        listeners.add(listener)
        return () => void listeners.delete(listener)
      },
      changes: () => changes,
      since: (known) => ({
        records: [...all.values()].filter(({ changed }) => changed > known).sort((a, b) => b.changed - a.changed),
        gap: known > changes || lost > known
      })
    })
  })

  static readonly layer: Layer.Layer<Requests, never, ConfigStore> = Layer.effect(Requests, Requests.make)
}
