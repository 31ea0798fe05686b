/**
 * Whether this node can use the store: it is available or lost, as this node sees it.
 */
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import type { StoreClient } from "./client.ts"
import type { StoreListeners } from "./messages.ts"
import { StoreUnavailable } from "./StoreShape.ts"

export const unavailable = new StoreUnavailable({ message: "The store does not answer" })

/** Adds the store and this node to log lines. */
export type About = <A>(logs: Effect.Effect<A>) => Effect.Effect<A>

export class Availability {
  readonly #client: Pick<StoreClient, "isFailing">
  readonly #listeners: StoreListeners
  readonly #now: () => number
  readonly #about: About
  /** Open while the store is lost. */
  readonly #lost = Latch.makeUnsafe(true)
  #state: "up" | "lost" = "lost"
  #since: number

  /** The store counts as lost until it is set to be up. `now` is in Unix milliseconds. */
  constructor(
    client: Pick<StoreClient, "isFailing">,
    listeners: StoreListeners,
    now: () => number,
    about: About
  ) {
    this.#client = client
    this.#listeners = listeners
    this.#now = now
    this.#about = about
    this.#since = now()
  }

  get state(): "up" | "lost" {
    return this.#state
  }

  /** Start of the state; Unix milliseconds. */
  get since(): number {
    return this.#since
  }

  get isUp(): boolean {
    return this.#state === "up"
  }

  /** Changes the state, notifies the listeners and logs it. */
  set(next: "up" | "lost"): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#state === next) return Effect.void
      this.#state = next
      this.#since = this.#now()
      if (next === "lost") this.#lost.openUnsafe()
      else this.#lost.closeUnsafe()
      this.#listeners.emit({ _tag: next })
      return this.#about(
        next === "up"
          ? Effect.logInfo("The store is available")
          : Effect.logWarning("The store is lost: new requests are refused until it is back")
      )
    })
  }

  /** Marks the store as lost if an effect fails as it does without one. */
  watched<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.tapError(effect, () => this.#client.isFailing() ? this.set("lost") : Effect.void)
  }

  /** Runs an effect until the store is lost. */
  whileUp<A>(effect: Effect.Effect<A, StoreUnavailable>): Effect.Effect<A, StoreUnavailable> {
    return Effect.raceFirst(effect, Effect.andThen(this.#lost.await, Effect.fail(unavailable)))
  }
}
