/**
 * Membership of this node: it is attached to the store's data with its actual leases and waiters, by an incarnation that differs after
 * each attach. The store answers no script of an incarnation that it does not know.
 */
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { randomBytes } from "node:crypto"
import { type Availability, unavailable } from "./Availability.ts"
import type { BroughtBack } from "./BroughtBack.ts"
import type { StoreClient } from "./client.ts"
import type { StoreListeners } from "./messages.ts"
import type { NodeFacts } from "./NodeFacts.ts"
import { type ScriptName, scripts } from "./scripts.ts"
import type { NameSecret } from "./sharedSecrets.ts"
import type { StoreClock } from "./StoreClock.ts"
import { StoreInvalid, StoreUnavailable } from "./StoreShape.ts"
import type { Subscription } from "./Subscription.ts"

/** What an attachment needs of the node and the other parts of the store. */
interface AttachmentParts {
  readonly node: string
  readonly version: string
  /** Unix milliseconds. */
  readonly now: () => number
  readonly client: StoreClient
  readonly availability: Availability
  readonly broughtBack: BroughtBack
  readonly facts: NodeFacts
  readonly listeners: StoreListeners
  readonly names: NameSecret
  readonly storeClock: StoreClock
  readonly subscription: Subscription
}

/** Pause between tries to start with an id that another node may still use, in milliseconds, and their number. */
const retryMillis = 500
const mostTries = 10

export class Attachment {
  readonly #parts: AttachmentParts
  readonly #startedAt: number
  readonly #attaching = Semaphore.makeUnsafe(1)
  #attaches = 0
  #incarnation = ""
  #epoch = ""
  /** The connect (`generation`) of the last attach: after another one, another server may answer. */
  #over = 0
  #answeredAt: number

  constructor(parts: AttachmentParts) {
    this.#parts = parts
    this.#startedAt = this.#answeredAt = parts.now()
  }

  /** The id of the store's data. */
  get epoch(): string {
    return this.#epoch
  }

  get incarnation(): string {
    return this.#incarnation
  }

  /** When the store answered a script last; Unix milliseconds. */
  get answeredAt(): number {
    return this.#answeredAt
  }

  /** Counts as an answer of the store. */
  answered(): void {
    this.#answeredAt = this.#parts.now()
  }

  /** Whether the server of the last attach answers, and notifies this node. */
  get isWhole(): boolean {
    return this.#isSameServer && this.#parts.subscription.epoch === this.#epoch
  }

  get #isSameServer(): boolean {
    return this.#over === this.#parts.client.generation()
  }

  /** Runs a script as an incarnation of this node. */
  runAs(
    name: ScriptName,
    as: string,
    args: ReadonlyArray<string>
  ): Effect.Effect<ReadonlyArray<string>, StoreUnavailable> {
    const { client, node } = this.#parts
    return Effect.tap(client.run(scripts[name], ["", node, as, ...args]), () => Effect.sync(() => this.answered()))
  }

  /** Runs a script as this node; attaches first if necessary. */
  run(name: ScriptName, args: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<string>, StoreUnavailable> {
    return Effect.suspend(() => {
      if (!this.#parts.availability.isUp) return Effect.fail(unavailable)
      const as = this.#incarnation
      if (!this.#isSameServer) return Effect.andThen(this.attach(as), this.run(name, args))
      return Effect.flatMap(
        this.runAs(name, as, args),
        (reply) => reply[0] === "lost" ? Effect.andThen(this.attach(as), this.run(name, args)) : Effect.succeed(reply)
      )
    })
  }

  /** Attaches in the place of an incarnation, unless another fiber has already. */
  attach(found: string): Effect.Effect<void, StoreUnavailable> {
    const { availability, broughtBack } = this.#parts
    return this.#attaching.withPermit(
      Effect.suspend(() => this.#incarnation === found ? Effect.asVoid(this.#attachNow(false)) : Effect.void)
    ).pipe(
      Effect.catchTag("StoreInvalid", ({ message }) => Effect.fail(new StoreUnavailable({ message }))),
      Effect.tap(() => availability.isUp ? broughtBack.bring() : Effect.void)
    )
  }

  /** The first attach, without leases. Fails if a running node has the id. */
  readonly start: Effect.Effect<void, StoreUnavailable | StoreInvalid> = Effect.gen({ self: this }, function*() {
    for (let tries = 0; !(yield* this.#attachNow(true)); tries++) {
      if (tries >= mostTries) {
        return yield* new StoreInvalid({
          message:
            `GATEWAY_NODE_ID ${this.#parts.node} is in use by a running node: stop that one, or choose another name`
        })
      }
      yield* Effect.sleep(retryMillis)
    }
    // Other nodes may be about to reattach to an empty store.
    const { quietLeft } = this.#parts.storeClock
    if (quietLeft > 0) yield* Effect.sleep(quietLeft)
  })

  /** The store releases immediately what this node has. */
  readonly leave: Effect.Effect<void> = Effect.ignore(Effect.suspend(() => this.runAs("leave", this.#incarnation, [])))

  /**
   * Attaches with the node's leases and waiters. `starts`: this is the first attach, and another node may still use the id. Returns
   * false if one does. Fails if the store has data of another format.
   */
  #attachNow(starts: boolean, wasEmptied = false): Effect.Effect<boolean, StoreUnavailable | StoreInvalid> {
    return Effect.gen({ self: this }, function*() {
      const { broughtBack, client, facts, listeners, names, now, storeClock, subscription, version } = this.#parts
      const as = `${this.#startedAt.toString(36)}${randomBytes(4).toString("hex")}-${++this.#attaches}`
      const { leases, tickets } = facts.holdings()
      const known = this.#epoch
      const over = client.generation()
      const reply = yield* this.runAs("attach", as, [
        starts ? "1" : "0",
        randomBytes(8).toString("hex"),
        known,
        version,
        String(this.#startedAt),
        JSON.stringify(leases),
        JSON.stringify(tickets)
      ])
      if (reply[0] === "format") {
        return yield* new StoreInvalid({
          message: `the data of the store has format ${reply[1]}, and this version reads format ${reply[2]}: ` +
            "start the version that wrote it, or use an empty store"
        })
      }
      if (reply[0] !== "ok") return false
      const [, epoch = "", time, quiet, revision, dropped, server = "", dataAt, ...lines] = reply
      this.#incarnation = as
      this.#over = over
      this.#epoch = epoch
      storeClock.read(Number(time), Number(quiet), now())
      subscription.caughtUp(lines.length)
      if (subscription.epoch !== epoch || starts) yield* subscription.subscribe(epoch)
      const isEmptied = wasEmptied || (known !== "" && known !== epoch)
      if (isEmptied) {
        // The store was emptied or replaced, so shared secrets may be lost or different.
        if ((yield* names.agree()) === "changed") return yield* this.#attachNow(false, true)
        listeners.emit({ _tag: "restored" })
      }
      const to = `${epoch} ${server}`
      if (known === "") broughtBack.startsAt(to)
      const returns = broughtBack.returnsTo(to, { isEmpty: isEmptied, at: isEmptied ? 0 : Number(dataAt) })
      listeners.receive(lines)
      // The store dropped no leases that it returned without.
      if (dropped !== "0" && !returns) listeners.emit({ _tag: "dropped", leases: Number(dropped) })
      listeners.emit({ _tag: "config", revision: Number(revision) })
      return true
    })
  }
}
