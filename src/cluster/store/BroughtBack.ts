/**
 * What this node brings back to a store whose server was replaced or restarted, and whose data may be older than what the node knows.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import type { ReturnedData, StoreUnavailable } from "./StoreShape.ts"

/** Writes what this node knows. */
type Bring = (data: ReturnedData) => Effect.Effect<void, StoreUnavailable>

export class BroughtBack {
  readonly #brings: Array<Bring> = []
  readonly #turn = Semaphore.makeUnsafe(1)
  readonly #scope: Scope.Scope
  readonly #done: () => void
  /** The data and the run id of the server that has all that this node knows. */
  #broughtTo = ""
  /** What another server is still to get. */
  #pending:
    | { readonly to: string; readonly effects: ReadonlyArray<Effect.Effect<void, StoreUnavailable>> }
    | undefined

  /** `done` runs when a server has got everything. The scope ends the writing. */
  constructor(scope: Scope.Scope, done: () => void) {
    this.#scope = scope
    this.#done = done
  }

  register(bring: Bring): void {
    this.#brings.push(bring)
  }

  /** Whether the server has all that this node knows. */
  get isComplete(): boolean {
    return this.#pending === undefined
  }

  /** The first server of this node lacks nothing of it. */
  startsAt(server: string): void {
    this.#broughtTo = server
  }

  /** Whether a server with its data is another one than before, which then gets what this node knows. */
  returnsTo(server: string, data: ReturnedData): boolean {
    const returns = server !== this.#broughtTo
    if (returns && this.#pending?.to !== server) {
      this.#pending = { to: server, effects: this.#brings.map((bring) => bring(data)) }
    }
    return returns
  }

  /** Starts to write in the background what is pending, once at a time. */
  bring(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const pending = this.#pending
      if (pending === undefined) return Effect.void
      return Effect.flatMap(Effect.forEach(pending.effects, Effect.exit), (exits) =>
        Effect.sync(() => {
          if (this.#pending !== pending || exits.some(Exit.isFailure)) return
          this.#broughtTo = pending.to
          this.#pending = undefined
          this.#done()
        }))
    }).pipe(this.#turn.withPermitsIfAvailable(1), Effect.forkIn(this.#scope), Effect.asVoid)
  }
}
