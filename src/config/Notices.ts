/**
 * The events that webhooks send, from where they happen to where they are delivered. Sources publish synchronously, so that a request
 * never waits, and costs nothing while no webhook wants a type.
 *
 * An event is published once for its subject until its window ends, or once a minute.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type { Notice, NoticeData, NoticeType } from "../domain/notices.ts"

/** The events that wait for their reader. The oldest go first. */
const mostWaiting = 1_000

/** The subjects that are remembered. A forgotten one may be published again, with the same id. */
const mostSubjects = 10_000

const minute = 60_000

const nothing: ReadonlySet<NoticeType> = new Set()

export class Notices {
  readonly #now: () => number
  readonly #queue: Queue.Queue<Notice>
  /** When each type and subject may be published again, the oldest entry first. */
  readonly #until = new Map<string, number>()
  #wanted = nothing
  #dropped = 0

  /** `now` is in Unix milliseconds. */
  constructor(now: () => number, queue: Queue.Queue<Notice>) {
    this.#now = now
    this.#queue = queue
  }

  /** Sets the types that some webhook wants. */
  set wanted(types: ReadonlySet<NoticeType>) {
    this.#wanted = types
  }

  /** Whether a webhook wants a type. A source asks before it computes anything. */
  wants(type: NoticeType): boolean {
    return this.#wanted.has(type)
  }

  /** The events that were dropped, since too many waited. */
  get dropped(): number {
    return this.#dropped
  }

  /** Publishes an event. `until` is the end of its window in Unix milliseconds; without one the next may follow after a minute. */
  publish<Type extends NoticeType>(type: Type, subject: string, data: NoticeData<Type>, until?: number): void {
    if (!this.#wanted.has(type)) return
    const at = this.#now()
    const end = Math.max(until ?? 0, at + minute)
    if (!this.#note(type, subject, at, end)) return
    if (Queue.isFullUnsafe(this.#queue)) this.#dropped++
    Queue.offerUnsafe(this.#queue, { type, subject, at, until: end, window: until, data })
  }

  /** An event that was published before this process began, as what is kept shows: it is not published again in its window. */
  known(type: NoticeType, subject: string, until: number): void {
    this.#note(type, subject, this.#now(), until)
  }

  /** The next event. */
  get take(): Effect.Effect<Notice> {
    return Queue.take(this.#queue)
  }

  /** Whether an event is the first of its subject for now. */
  #note(type: NoticeType, subject: string, at: number, until: number): boolean {
    const key = `${type} ${subject}`
    if ((this.#until.get(key) ?? 0) > at) return false
    this.#until.delete(key)
    this.#until.set(key, until)
    if (this.#until.size > mostSubjects) this.#until.delete(this.#until.keys().next().value!)
    return true
  }
}

const make = Effect.gen(function*() {
  const clock = yield* Clock.Clock
  return new Notices(() => clock.currentTimeMillisUnsafe(), yield* Queue.sliding<Notice>(mostWaiting))
})

/** The events of this gateway. By default there is no reader, and nothing is wanted. */
export const CurrentNotices = Context.Reference<Notices>("model-gateway/config/Notices", {
  defaultValue: () => Effect.runSync(make)
})

export const layerNotices: Layer.Layer<never> = Layer.effect(CurrentNotices, make)
