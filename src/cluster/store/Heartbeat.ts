/**
 * The heartbeat of this node, which also finds that the store is lost, that it is back, and that it counts other leases than this node.
 */
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type { Attachment } from "./Attachment.ts"
import type { About, Availability } from "./Availability.ts"
import type { BroughtBack } from "./BroughtBack.ts"
import type { StoreClient } from "./client.ts"
import type { StoreListeners } from "./messages.ts"
import type { NodeFacts } from "./NodeFacts.ts"
import type { EvictionWatch } from "./server.ts"
import type { StoreClock } from "./StoreClock.ts"
import type { StoreUnavailable } from "./StoreShape.ts"
import type { Subscription } from "./Subscription.ts"

const beatMillis = 1_000
/** Interval between tries while the store is lost, in milliseconds. */
const retryMillis = 500
/** Clock difference above which this node logs a warning, in milliseconds. */
const wrongClockMillis = 5_000
/** Consecutive heartbeats with different counts after which the node attaches again. */
const beatsToDiffer = 3
/** Milliseconds without a reply after which the node reconnects. */
const hangMillis = 5_000

/** What the heartbeat needs of the other parts of the store. */
interface HeartbeatParts {
  /** Unix milliseconds. */
  readonly now: () => number
  readonly about: About
  readonly client: StoreClient
  readonly attachment: Attachment
  readonly availability: Availability
  readonly broughtBack: BroughtBack
  readonly eviction: EvictionWatch
  readonly facts: NodeFacts
  readonly listeners: StoreListeners
  readonly storeClock: StoreClock
  readonly subscription: Subscription
  /** Ends the pause until the next heartbeat. */
  readonly nudges: Queue.Queue<void>
}

export class Heartbeat {
  readonly #parts: HeartbeatParts
  #warned = false
  /** The consecutive heartbeats of an incarnation with different counts. */
  #differing = { as: "", beats: 0 }

  constructor(parts: HeartbeatParts) {
    this.#parts = parts
  }

  /** Beats for ever. */
  readonly run: Effect.Effect<never> = Effect.forever(Effect.suspend(() => {
    const { availability, client } = this.#parts
    if (availability.isUp && client.isFailing()) return Effect.andThen(availability.set("lost"), Effect.sleep(50))
    return availability.isUp
      ? Effect.andThen(
        Effect.ignore(availability.watched(this.#beat())),
        Effect.all([this.#pause(), this.#watchPrimary()], { concurrency: 2 })
      )
      : Effect.andThen(Effect.ignore(this.#reattach()), this.#pause())
  }))

  #beat(): Effect.Effect<void, StoreUnavailable> {
    return Effect.gen({ self: this }, function*() {
      const { attachment, broughtBack, eviction, facts, listeners, now, storeClock, subscription } = this.#parts
      // The store grants nothing to a node without a subscription.
      if (!attachment.isWhole) yield* attachment.attach(attachment.incarnation)
      yield* broughtBack.bring()
      const before = facts.counts()
      const sentAt = now()
      const as = attachment.incarnation
      const reply = yield* attachment.runAs("beat", as, [
        String(subscription.seen),
        facts.isDraining() ? "draining" : "up",
        String(facts.revision),
        broughtBack.isComplete ? "1" : "0"
      ])
      if (reply[0] === "lost") return yield* attachment.attach(as)
      const [, time, revision, leases, tickets, quiet, sent, ...lines] = reply
      storeClock.read(Number(time), Number(quiet), (sentAt + now()) / 2)
      yield* this.#warnOfClock()
      subscription.caughtUp(Number(sent))
      listeners.receive(lines)
      listeners.emit({ _tag: "config", revision: Number(revision) })
      listeners.emit({ _tag: "beat" })
      const after = facts.counts()
      const difference = Math.abs(Number(leases) - after.leases) + Math.abs(Number(tickets) - after.tickets)
      if (this.#differs(as, difference > before.unsettled + after.unsettled + lines.length)) {
        yield* attachment.attach(attachment.incarnation)
      }
      yield* eviction.check
    })
  }

  /** Whether the counts of an incarnation have differed for long enough. */
  #differs(as: string, differs: boolean): boolean {
    const beats = !differs ? 0 : this.#differing.as === as ? this.#differing.beats + 1 : 1
    this.#differing = { as, beats }
    return beats >= beatsToDiffer
  }

  /** Warns once of a wrong clock. */
  #warnOfClock(): Effect.Effect<void> {
    const { about, storeClock: { offset } } = this.#parts
    if (Math.abs(offset) <= wrongClockMillis || this.#warned) return Effect.void
    this.#warned = true
    return about(Effect.logWarning("This node's clock differs from the store's")).pipe(
      Effect.annotateLogs({ seconds: Math.round(-offset / 1_000) })
    )
  }

  #reattach(): Effect.Effect<void, StoreUnavailable> {
    return Effect.gen({ self: this }, function*() {
      const { attachment, availability, broughtBack, client, now, subscription } = this.#parts
      if (now() - attachment.answeredAt > hangMillis || (yield* client.isMoved)) {
        attachment.answered()
        // A server that is no longer the primary may still send grants.
        yield* subscription.close
        yield* client.replace
      }
      yield* attachment.attach(attachment.incarnation)
      yield* availability.set("up")
      yield* broughtBack.bring()
    })
  }

  /** Sentinels or a cluster may name another primary while the old one still answers. */
  #watchPrimary(): Effect.Effect<void> {
    const { availability, client } = this.#parts
    return Effect.flatMap(client.isMoved, (isMoved) => isMoved ? availability.set("lost") : Effect.void)
  }

  /** The pause until the next heartbeat, which ends the quiet period in time. */
  #pause(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { availability, nudges, storeClock: { quietLeft } } = this.#parts
      const millis = !availability.isUp
        ? retryMillis
        : quietLeft > 0
        ? Math.min(beatMillis, quietLeft + 5)
        : beatMillis
      return Effect.raceFirst(Effect.sleep(millis), Queue.take(nudges))
    })
  }
}
