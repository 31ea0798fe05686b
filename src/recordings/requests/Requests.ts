/**
 * Records of requests: a bounded ring of who asked what, what went over both wires, and how it ended. Refused requests have a
 * share of it, so that a stranger's cannot push all others out.
 *
 * While records are off there is none, and nothing is done for them.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { findAccount } from "../../config/Account.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { Spares } from "../captures/byteLog.ts"
import { Ledger } from "./Ledger.ts"
import type { RequestFacts } from "./RequestFacts.ts"
import { type RequestHead, RequestRecord } from "./RequestRecord.ts"

/** The part of a full ring that refused requests may have: a quarter. */
const refusedShare = 4

/** A page of records. */
export interface RecordPage {
  /** Newest first. */
  readonly records: ReadonlyArray<RequestRecord>
  /** For what is older; `undefined` at the end. */
  readonly next: number | undefined
}

/** One who is told of changes as they happen. Must be cheap and must not throw. */
export type RecordListener = (record: RequestRecord) => void

/** Changes since one that a reader knows. */
export interface MissedChanges {
  /** The newest state of each record that changed, the one that changed last before all others. */
  readonly records: ReadonlyArray<RequestRecord>
  /** Records that changed are gone: the reader has to read the list again. */
  readonly gap: boolean
}

export class Requests extends Context.Service<Requests, {
  /**
   * A record for a request that begins, its credential being accepted; `undefined` while records are off. `facts` may change
   * as long as it runs; `secret` is the caller's credential, never to be shown.
   */
  readonly begin: (request: {
    readonly facts: RequestFacts
    readonly key: string
    readonly head: () => RequestHead
    readonly secret: string
  }) => RequestRecord | undefined
  /** Records older than `before` (all where it is absent) that fit, newest first. */
  readonly page: (
    before: number | undefined,
    limit: number,
    fits: (record: RequestRecord) => boolean
  ) => RecordPage
  /** The record of a number. */
  readonly numbered: (number: number) => RequestRecord | undefined
  /** The newest record of a request id. */
  readonly named: (requestId: string) => RequestRecord | undefined
  /** Forgets all that are over. */
  readonly clear: () => void
  readonly status: () => { readonly kept: number; readonly bytes: number }
  /** Tells `listener` of every change until the returned function is called. */
  readonly listen: (listener: RecordListener) => () => void
  /** How many changes there were. */
  readonly changes: () => number
  /** What changed after a count of changes. */
  readonly since: (changes: number) => MissedChanges
}>()("model-gateway/requests/Requests") {
  static readonly make = Effect.gen(function*() {
    const config = yield* ConfigStore
    const clock = yield* Clock.Clock
    const settings = () => config.now().requests
    const ledger = new Ledger(() => settings().max_total_bytes)
    /** In the order in which they began. */
    const all = new Map<number, RequestRecord>()
    /** Those that are over, in the order in which they ended; the refused ones apart. */
    const over = new Set<RequestRecord>()
    const refused = new Set<RequestRecord>()
    const listeners = new Set<RecordListener>()
    let made = 0
    let changes = 0
    /** The last change of a record that is gone. */
    let lost = 0

    const touched = (record: RequestRecord) => {
      if (!all.has(record.number)) return
      record.changed = ++changes
      if (record.endedAt !== undefined) (record.isRefused ? refused : over).add(record)
      for (const listener of listeners) listener(record)
    }

    const home = {
      ledger,
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

    /** Refused ones beyond their share go first, then others that are over, the one that ended first before all others. */
    const trim = () => {
      const { limit } = settings()
      while (all.size > limit) {
        const [first = undefined] = refused.size > limit / refusedShare || over.size === 0 ? refused : over
        forget(first ?? all.values().next().value!)
      }
      ledger.trim()
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
      page(before, limit, fits) {
        trim()
        const records: Array<RequestRecord> = []
        for (const record of [...all.values()].reverse()) {
          if ((before !== undefined && record.number >= before) || !fits(record)) continue
          if (records.length === limit) return { records, next: records[limit - 1]!.number }
          records.push(record)
        }
        return { records, next: undefined }
      },
      numbered: (number) => all.get(number),
      named: (requestId) => [...all.values()].findLast((record) => record.facts.id === requestId),
      clear() {
        for (const record of [...over, ...refused]) forget(record)
      },
      status() {
        trim()
        return { kept: all.size, bytes: ledger.held }
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
