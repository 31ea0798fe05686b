/**
 * The channel on which the store and other nodes notify this node.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Queue from "effect/Queue"
import * as Scope from "effect/Scope"
import type { StoreClient } from "./client.ts"
import type { StoreListeners } from "./messages.ts"

export class Subscription {
  readonly #client: Pick<StoreClient, "connection">
  readonly #listeners: StoreListeners
  readonly #node: string
  readonly #scope: Scope.Scope
  #current: Scope.Closeable | undefined
  #epoch = ""
  #seen = 0

  /** The scope ends the subscription. */
  constructor(client: Pick<StoreClient, "connection">, listeners: StoreListeners, node: string, scope: Scope.Scope) {
    this.#client = client
    this.#listeners = listeners
    this.#node = node
    this.#scope = scope
  }

  /** The id of the data whose channel is subscribed; empty without one. */
  get epoch(): string {
    return this.#epoch
  }

  /** The number of the last message before which none is missing. */
  get seen(): number {
    return this.#seen
  }

  /** The store has sent all messages up to a number otherwise. */
  caughtUp(number: number): void {
    this.#seen = number
  }

  /** Subscribes to the channel of the store's data, in the place of the current one. */
  subscribe(epoch: string) {
    return Effect.gen({ self: this }, function*() {
      if (this.#current !== undefined) yield* Scope.close(this.#current, Exit.void)
      const own = this.#current = yield* Scope.fork(this.#scope)
      this.#epoch = epoch
      const { redis } = this.#client.connection()
      const queue = yield* Scope.provide(redis.subscribe(`gw:{main}:${epoch}:${this.#node}`), own)
      yield* Queue.take(queue).pipe(
        Effect.flatMap(({ message }) => Effect.sync(() => this.#receive(message))),
        Effect.forever,
        // The subscription failed or ended; the next heartbeat subscribes again.
        Effect.catch(() =>
          Effect.sync(() => {
            if (this.#current === own) this.#epoch = ""
          })
        ),
        Effect.forkIn(own)
      )
    })
  }

  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    this.#epoch = ""
    return this.#current === undefined ? Effect.void : Scope.close(this.#current, Exit.void)
  })

  /** A text of the channel: the number of its last message (0 for unnumbered ones), then a line each. */
  #receive(text: string): void {
    const [last = "0", ...lines] = text.split("\n")
    const number = Number(last)
    // Missed messages come with the next heartbeat; handling one twice is harmless.
    if (number > 0 && number - lines.length === this.#seen) this.#seen = number
    this.#listeners.receive(lines)
  }
}
