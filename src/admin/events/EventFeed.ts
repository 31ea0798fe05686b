/**
 * The event stream of one reader. Changes are collected as they happen, and written when the reader pulls, at most four events
 * of a kind each second. A reader that does not pull holds at most one round of events in memory.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type AccountFacts, Accounts } from "../../accounts/Accounts.ts"
import type { QueueStatus } from "../../accounts/Lease.ts"
import { findAccount } from "../../config/Account.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { ConfigTransfer } from "../../config/ConfigTransfer.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { Draining } from "../../http/Draining.ts"
import type { RequestRecord } from "../../recordings/RequestRecord.ts"
import { Requests } from "../../recordings/Requests.ts"
import { accountsThat, itemOf, shownTo, stateOf } from "../accounts/view.ts"
import type { Operator } from "../middleware.ts"
import { keyNameIn, viewItem } from "../requests/view.ts"
import { currentVersion } from "../system/build.ts"
import type { ConfigEvent, HelloEvent, PoolEvent, QueueEvent, RequestsEvent } from "./Api.ts"

export const topics = ["pool", "queue", "requests", "config"] as const
export type Topic = (typeof topics)[number]

/** Milliseconds between two events of a kind. */
const pause = 250
/** Milliseconds of silence before a comment is sent, and between two checks of the credential. */
const quiet = 5_000
/** Milliseconds after which an ended stream is cut off if its reader does not read. */
const grace = 1_000
const mostAccounts = 100
const mostRequests = 200

const comment = ": \n\n"

/** The part that all feeds of a gateway share. */
export interface FeedSource {
  /** Identifies this process in event ids. */
  readonly boot: string
  /** Unix milliseconds. */
  readonly startedAt: number
  /** The id of this node; `undefined` unless several nodes share a store. */
  readonly node: () => string | undefined
}

interface FeedOptions {
  readonly topics: ReadonlySet<Topic>
  /** `Last-Event-ID` of the request. */
  readonly lastEventId: string | undefined
  readonly operator: Pick<Operator, "holds" | "role">
}

/** Keeps the `most` latest different values, and whether there were more. */
class Latest<A> {
  readonly #most: number
  readonly #kept = new Set<A>()
  #more = false

  constructor(most: number) {
    this.#most = most
  }

  add(value: A): void {
    this.#kept.delete(value)
    this.#kept.add(value)
    if (this.#kept.size <= this.#most) return
    const [first] = this.#kept
    this.#kept.delete(first!)
    this.#more = true
  }

  /** Returns the values, the latest first, and clears them. */
  take(): { readonly values: ReadonlyArray<A>; readonly more: boolean } {
    const taken = { values: [...this.#kept].reverse(), more: this.#more }
    this.#kept.clear()
    this.#more = false
    return taken
  }
}

type EventData =
  | typeof HelloEvent.Type
  | typeof PoolEvent.Type
  | typeof QueueEvent.Type
  | typeof RequestsEvent.Type
  | typeof ConfigEvent.Type
  | Readonly<Record<string, never>>

/** The position in the changes of requests for an event id; `undefined` for an id of another process. */
const placeOf = (boot: string, id: string): number | undefined => {
  const [process, place] = id.split(".", 2)
  return process === boot && place !== undefined && /^\d{1,15}$/.test(place) ? Number(place) : undefined
}

/** The events of one reader as text. Collecting ends with the scope. */
export const eventFeed = Effect.fnUntraced(function*(
  { boot, node, startedAt }: FeedSource,
  { lastEventId, operator, topics }: FeedOptions
): Effect.fn.Return<Stream.Stream<string>, never, Accounts | ConfigStore | ConfigTransfer | Requests | Scope.Scope> {
  const accounts = yield* Accounts
  const config = yield* ConfigStore
  const { configHash } = yield* ConfigTransfer
  const requests = yield* Requests
  const clock = yield* Clock.Clock
  const draining = yield* Draining
  const response = Fiber.getCurrent()
  const now = () => monotonicMillis(clock)
  const view = () => ({ node: node(), keyName: keyNameIn(config.now()) })

  const due = new Set<Topic>(topics)
  due.delete("requests")
  const sentAt = new Map<Topic, number>()
  const changedAccounts = new Latest<string>(mostAccounts)
  const changedRequests = new Latest<RequestRecord>(mostRequests)
  /** Events at the beginning of the stream. */
  const first: Array<string> = []
  /** The position up to which changes of requests are sent. */
  let sentUpTo = requests.changes()
  let revision: string | undefined
  let wroteAt = now()
  let ending: "no" | "credential" | "drain" | "over" = "no"
  let waiter: Deferred.Deferred<void> | undefined

  const wake = () => {
    if (waiter !== undefined) Deferred.doneUnsafe(waiter, Exit.void)
  }
  const changed = (topic: Topic) => {
    due.add(topic)
    wake()
  }
  const ended = yield* Deferred.make<void>()
  const end = (why: "credential" | "drain") => {
    if (ending === "no") ending = why
    Deferred.doneUnsafe(ended, Exit.void)
    wake()
  }

  const eventText = (event: string, data: EventData): string =>
    `id: ${boot}.${sentUpTo}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`

  // Listeners are registered before state is read, so that no change is missed.

  if (topics.has("requests")) {
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        const stop = requests.listen((record) => {
          changedRequests.add(record)
          changed("requests")
        })
        sentUpTo = requests.changes()
        return stop
      }),
      (stop) => Effect.sync(stop)
    )
  }
  if (topics.has("pool") || topics.has("queue")) {
    yield* accounts.watch({
      pool(identifier) {
        if (!topics.has("pool")) return
        if (identifier !== undefined) changedAccounts.add(identifier)
        changed("pool")
      },
      queue() {
        if (topics.has("queue")) changed("queue")
      }
    })
  }
  yield* Effect.forkScoped(
    Stream.runForEach(config.changes, () =>
      Effect.flatMap(operator.holds, (holds) =>
        Effect.sync(() => {
          if (!holds) end("credential")
          if (topics.has("config")) changed("config")
        })))
  )
  yield* Effect.forkScoped(Effect.andThen(draining, Effect.sync(() => end("drain"))))

  const check = Effect.andThen(
    Effect.sleep(quiet),
    Effect.map(operator.holds, (holds) => {
      if (!holds) end("credential")
    })
  )
  const cutOff = Deferred.await(ended).pipe(
    Effect.andThen(Effect.sleep(grace)),
    Effect.andThen(Effect.sync(() => response?.interruptUnsafe()))
  )
  yield* Effect.forkScoped(Effect.forever(check))
  yield* Effect.forkScoped(cutOff)

  /** Accounts in use, then those out of rotation: one more than an event has, to detect that there are others. */
  const busyOrHeldBack = Effect.fnUntraced(function*({ cooling, failed_tests, in_use_accounts, out }: QueueStatus) {
    const room = mostAccounts + 1
    const names = new Set(in_use_accounts.slice(0, room))
    const most = cooling + out + failed_tests
    if (most > 0 && names.size < room) {
      const { accounts: configured } = config.now()
      const isHeldBack = ({ disabled, health, identifier, testStatus }: AccountFacts) =>
        (health !== "ready" || testStatus === "failed") && !disabled && !names.has(identifier)
      const held = yield* accountsThat(accounts, configured, isHeldBack, Math.min(room - names.size, most))
      for (const { identifier } of held) names.add(identifier)
    }
    return [...names]
  })

  const poolEvent = Effect.gen(function*() {
    const { values, more } = changedAccounts.take()
    const { account_table } = config.now()
    const status = yield* accounts.status
    // The first event has all accounts that are not idle and ready.
    const known = sentAt.has("pool") ? [] : yield* busyOrHeldBack(status)
    const named = sentAt.has("pool") ? values : known.slice(0, mostAccounts)
    const facts = yield* accounts.describe(named)
    // What one node knows of an account would change with the node that the reader is connected to.
    const view = node() === undefined ? itemOf : stateOf
    const items = facts.flatMap((each) => {
      const account = findAccount(account_table, each.identifier)
      return account === undefined ? [] : [shownTo(operator.role, view(account, each, config.now()))]
    })
    return eventText("pool", {
      total: status.total,
      available: status.available,
      in_use: status.in_use,
      cooling: status.cooling,
      out: status.out,
      disabled: status.disabled,
      failed_tests: status.failed_tests,
      max_inflight_per_account: status.max_inflight_per_account,
      global_max_inflight: status.global_max_inflight,
      changed: items,
      more: more || known.length > mostAccounts
    })
  })

  const queueEvent = Effect.map(
    accounts.status,
    ({ max_queue_size, oldest_wait_ms, waiters, waiting }) =>
      eventText("queue", { waiting, max_queue_size, oldest_wait_ms, waiters })
  )

  const requestsEvent = Effect.sync(() => {
    const { more, values } = changedRequests.take()
    sentUpTo = requests.changes()
    return eventText("requests", { items: values.map((record) => viewItem(record, view())), more })
  })

  const configEvent = Effect.map(configHash, (hash) => {
    if (hash === revision) return ""
    revision = hash
    return eventText("config", { revision: hash })
  })

  const eventOf = (topic: Topic): Effect.Effect<string> =>
    ({ pool: poolEvent, queue: queueEvent, requests: requestsEvent, config: configEvent })[topic]

  /** The events that a returning reader has missed. */
  const missed = (): ReadonlyArray<string> => {
    if (lastEventId === undefined || lastEventId === "") return []
    const place = placeOf(boot, lastEventId)
    const { gap, records } = place === undefined ? { gap: true, records: [] } : requests.since(place)
    if (place === undefined || (gap && topics.has("requests"))) return [eventText("reset", {})]
    if (records.length === 0 || !topics.has("requests")) return []
    return [eventText("requests", {
      items: records.slice(0, mostRequests).map((record) => viewItem(record, view())),
      more: records.length > mostRequests
    })]
  }

  const hello = yield* configHash
  first.push(eventText("hello", { version: currentVersion, started_at: startedAt, revision: hello }), ...missed())

  const next: Effect.Effect<string, Cause.Done> = Effect.suspend(() => {
    if (ending === "over" || ending === "drain") return Cause.done()
    if (ending === "credential") {
      ending = "over"
      return Effect.succeed(eventText("session_ended", {}))
    }
    const moment = now()
    const begin = first.splice(0)
    const ready = [...due].filter((topic) => moment - (sentAt.get(topic) ?? Number.NEGATIVE_INFINITY) >= pause)
    if (begin.length > 0 || ready.length > 0) {
      for (const topic of ready) due.delete(topic)
      return Effect.flatMap(Effect.forEach(ready, eventOf), (texts) => {
        for (const topic of ready) sentAt.set(topic, moment)
        const text = [...begin, ...texts].join("")
        if (text === "") return next
        wroteAt = moment
        return Effect.succeed(text)
      })
    }
    if (moment - wroteAt >= quiet) {
      wroteAt = moment
      return Effect.succeed(comment)
    }
    const soonest = Math.min(wroteAt + quiet, ...[...due].map((topic) => (sentAt.get(topic) ?? moment) + pause))
    waiter = Deferred.makeUnsafe()
    return Effect.andThen(Effect.timeoutOption(Deferred.await(waiter), Math.max(1, soonest - moment)), next)
  })

  return Stream.fromPull(Effect.succeed(Effect.map(next, (text) => [text] as const)))
})
