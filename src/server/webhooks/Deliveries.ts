/**
 * Delivers events to webhooks: one delivery at a time for each, with repeats. Nothing waits for it, and what waits here ends with the
 * process.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as FiberMap from "effect/FiberMap"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import type * as Metric from "effect/Metric"
import * as Queue from "effect/Queue"
import * as Random from "effect/Random"
import * as Stream from "effect/Stream"
import type { UpstreamActivity } from "../../accounts/UpstreamActivity.ts"
import { type Delivered, WebhookDeliveries, type WebhookState } from "../../admin/webhooks/WebhookDeliveries.ts"
import { CurrentNoticeClaim } from "../../cluster/store/noticeClaims.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import type { WebhookConfig } from "../../config/GatewayConfig.ts"
import { sha256Hex } from "../../config/json.ts"
import { CurrentNotices } from "../../config/Notices.ts"
import { type Notice, noticeId } from "../../domain/notices.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { total } from "../observability/requestMetrics.ts"
import { watchPools } from "./poolNotices.ts"
import { type Message, messageOf, sendOnce, testMessage } from "./send.ts"

/** The events that wait for one webhook. The oldest go first. */
const mostWaiting = 1_000

/** Milliseconds before each repeat of a delivery, which are up to a tenth shorter or longer. */
const pauses = [5_000, 30_000, 120_000, 600_000, 3_600_000]
const spread = 0.1

/** The last deliveries of one webhook that are kept, each with its event. */
const mostRecent = 100

/** An event that waits. */
interface Waiting {
  readonly message: Message
  /** Tries so far. */
  tries: number
  /** When it is due, in monotonic milliseconds. */
  due: number
}

const deliveries = (webhook: string, result: "delivered" | "failed") =>
  total("gateway_webhook_deliveries_total", "Deliveries to a webhook by their result, repeats included", {
    webhook,
    result
  })

const drops = (webhook: string) =>
  total("gateway_webhook_dropped_total", "Events that a webhook never got", { webhook })

type Count = (metric: Metric.Counter<number>, by: number) => void

/** A webhook with its events. */
class Receiver {
  config: WebhookConfig
  isGone = false
  dropped = 0
  delivered = 0
  /** At most `mostRecent`, the oldest first. */
  readonly recent: Array<{ readonly message: Message; readonly outcome: Delivered }> = []
  /** At most `mostWaiting`, the oldest first. */
  readonly waiting: Array<Waiting> = []
  readonly wake: Queue.Queue<void>
  readonly #count: Count

  constructor(config: WebhookConfig, wake: Queue.Queue<void>, count: Count) {
    this.config = config
    this.wake = wake
    this.#count = count
  }

  drop(count: number): void {
    if (count === 0) return
    this.dropped += count
    this.#count(drops(this.config.name), count)
  }

  add(message: Message, now: number): void {
    if (this.isGone) return
    if (this.waiting.length >= mostWaiting) {
      this.waiting.shift()
      this.drop(1)
    }
    this.waiting.push({ message, tries: 0, due: now })
    Queue.offerUnsafe(this.wake, undefined)
  }

  /** The event that is due first. */
  next(): Waiting | undefined {
    return this.waiting.reduce<Waiting | undefined>(
      (first, each) => first === undefined || each.due < first.due ? each : first,
      undefined
    )
  }

  /** Takes the outcome of a delivery. */
  sent(message: Message, outcome: Delivered): void {
    this.recent.push({ message, outcome })
    if (this.recent.length > mostRecent) this.recent.shift()
    this.#count(deliveries(this.config.name, outcome.error === null ? "delivered" : "failed"), 1)
  }

  /** Takes the outcome of a try. `random` is in [0, 1). */
  tried(entry: Waiting, outcome: Delivered, now: number, random: number): void {
    this.sent(entry.message, outcome)
    const place = this.waiting.indexOf(entry)
    if (outcome.status === 410) {
      this.isGone = true
      this.drop(this.waiting.length)
      this.waiting.length = 0
    } else if (outcome.error === null) {
      this.delivered++
      if (place >= 0) this.waiting.splice(place, 1)
    } else if (entry.tries < pauses.length) {
      entry.due = now + pauses[entry.tries]! * (1 - spread + 2 * spread * random)
      entry.tries++
    } else if (place >= 0) {
      this.waiting.splice(place, 1)
      this.drop(1)
    }
  }

  state(): WebhookState {
    return {
      state: this.isGone ? "gone" : "active",
      waiting: this.waiting.length,
      dropped: this.dropped,
      delivered: this.delivered,
      last: this.recent.at(-1)?.outcome
    }
  }
}

const unknown: WebhookState = { state: "active", waiting: 0, dropped: 0, delivered: 0, last: undefined }

/** The deliveries of this gateway. The scope ends them immediately. */
export const layerDeliveries: Layer.Layer<
  WebhookDeliveries,
  never,
  ConfigStore | HttpClient.HttpClient | UpstreamActivity
> = Layer.effect(
  WebhookDeliveries,
  Effect.gen(function*() {
    const store = yield* ConfigStore
    const client = yield* HttpClient.HttpClient
    const clock = yield* Clock.Clock
    const notices = yield* CurrentNotices
    const claim = yield* CurrentNoticeClaim
    const context = yield* Effect.context<never>()
    const fibers = yield* FiberMap.make<string>()
    const receivers = new Map<string, Receiver>()
    const now = () => monotonicMillis(clock)
    const count: Count = (metric, by) => metric.updateUnsafe(by, context)

    const deliver = Effect.fnUntraced(function*(receiver: Receiver, entry: Waiting) {
      const { config } = receiver
      const outcome = yield* sendOnce(client, config, entry.message)
      const random = yield* Random.next
      // An answer to an earlier form of the webhook says nothing about the present one.
      if (outcome.status === 410 && receiver.config !== config) return
      const wasGone = receiver.isGone
      receiver.tried(entry, outcome, now(), random)
      if (receiver.isGone && !wasGone) {
        yield* Effect.logWarning("A webhook's receiver is gone: nothing is sent until the webhook is changed").pipe(
          Effect.annotateLogs({ webhook: config.name })
        )
      } else if (outcome.error !== null && entry.tries === 1) {
        yield* Effect.logWarning("A webhook was not delivered, and is sent again").pipe(
          Effect.annotateLogs({ webhook: config.name, type: outcome.type, reason: outcome.error })
        )
      }
    })

    const run = (receiver: Receiver): Effect.Effect<never> =>
      Effect.forever(Effect.suspend(() => {
        const entry = receiver.next()
        if (entry === undefined) return Queue.take(receiver.wake)
        const wait = entry.due - now()
        return wait <= 0
          ? deliver(receiver, entry)
          : Effect.asVoid(Effect.timeoutOption(Queue.take(receiver.wake), wait))
      }))

    const configure = Effect.fnUntraced(function*(webhooks: ReadonlyArray<WebhookConfig>) {
      const names = new Set(webhooks.map(({ name }) => name))
      for (const [name, receiver] of receivers) {
        if (names.has(name)) continue
        receiver.drop(receiver.waiting.length)
        receivers.delete(name)
        yield* FiberMap.remove(fibers, name)
      }
      for (const webhook of webhooks) {
        const known = receivers.get(webhook.name)
        if (known === undefined) {
          const receiver = new Receiver(webhook, yield* Queue.sliding<void>(1), count)
          receivers.set(webhook.name, receiver)
          yield* FiberMap.run(fibers, webhook.name, run(receiver))
        } else if (!Equal.equals(known.config, webhook)) {
          known.config = webhook
          known.isGone = false
        }
      }
      notices.wanted = new Set(webhooks.flatMap(({ types }) => [...types]))
    })

    /** Events that were lost before they reached a webhook. */
    let lost = 0
    const pass = (notice: Notice) =>
      Effect.gen(function*() {
        const missed = notices.dropped - lost
        lost += missed
        const name = sha256Hex(JSON.stringify([notice.type, notice.subject])).slice(0, 32)
        const isOurs = yield* claim(name, notice.until - clock.currentTimeMillisUnsafe())
        const message = messageOf(noticeId(notice, sha256Hex), notice)
        for (const receiver of receivers.values()) {
          receiver.drop(missed)
          if (isOurs && receiver.config.types.has(notice.type)) receiver.add(message, now())
        }
      })

    yield* configure(store.now().webhooks)
    yield* Effect.forkScoped(
      Stream.runForEach(Stream.changes(Stream.map(store.changes, ({ webhooks }) => webhooks)), configure)
    )
    yield* Effect.forkScoped(Effect.forever(Effect.flatMap(notices.take, pass)))
    yield* watchPools(notices)

    /** Sends an event immediately, and one time. */
    const send = (receiver: Receiver, message: Message) =>
      Effect.tap(
        sendOnce(client, receiver.config, message),
        (outcome) => Effect.sync(() => receiver.sent(message, outcome))
      )

    return WebhookDeliveries.of({
      stateOf: (name) => receivers.get(name)?.state() ?? unknown,
      recentOf: (name) => receivers.get(name)?.recent.map(({ outcome }) => outcome).toReversed(),
      test: (name) =>
        Effect.suspend(() => {
          const receiver = receivers.get(name)
          return receiver === undefined
            ? Effect.undefined
            : send(receiver, testMessage(name, clock.currentTimeMillisUnsafe()))
        }),
      resend: (name, id) =>
        Effect.suspend(() => {
          const receiver = receivers.get(name)
          const kept = receiver?.recent.find(({ message }) => message.id === id)
          return receiver === undefined || kept === undefined ? Effect.undefined : send(receiver, kept.message)
        })
    })
  })
)
