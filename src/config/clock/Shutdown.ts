/**
 * The signal that ends running requests: the drain timeout has passed, or the operator forced the shutdown.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** A listener and its index; -1 once notified or removed. */
interface Listener {
  readonly notify: () => void
  index: number
}

/** Notifies all listeners once, synchronously. Listeners must not throw. */
export class Shutdown {
  private over = false
  /**
   * Unordered. Not a `Set`, because V8 links its tables to their successors: with a stream of short requests, young
   * garbage would survive until a full collection.
   */
  private readonly listeners: Array<Listener> = []

  /** Whether the signal was given. */
  get isOver(): boolean {
    return this.over
  }

  /** Whether there are listeners. */
  get hasListeners(): boolean {
    return this.listeners.length > 0
  }

  /** Gives the signal. */
  force(): void {
    if (this.over) return
    this.over = true
    // A listener may remove other listeners.
    for (let listener = this.listeners.pop(); listener !== undefined; listener = this.listeners.pop()) {
      listener.index = -1
      listener.notify()
    }
  }

  /** Calls `notify` at the signal. The returned function removes the listener. */
  watch(notify: () => void): () => void {
    const listener: Listener = { notify, index: this.listeners.length }
    this.listeners.push(listener)
    return () => this.remove(listener)
  }

  private remove(listener: Listener): void {
    const { index } = listener
    if (index === -1) return
    listener.index = -1
    const last = this.listeners.pop()!
    if (last === listener) return
    last.index = index
    this.listeners[index] = last
  }
}

/** Ends running requests. The default never fires; the server provides its own. */
export const CurrentShutdown = Context.Reference<Shutdown>("model-gateway/clock/Shutdown", {
  defaultValue: () => new Shutdown()
})

/** Ends a drain early, because the operator has asked twice. */
export const CurrentForcedShutdown = Context.Reference<Shutdown>("model-gateway/clock/ForcedShutdown", {
  defaultValue: () => new Shutdown()
})

/** Completes when the signal is given, immediately if it was. */
export const whenForced = (shutdown: Shutdown): Effect.Effect<void> =>
  Effect.callback((resume) => {
    if (shutdown.isOver) return resume(Effect.void)
    const unwatch = shutdown.watch(() => resume(Effect.void))
    return Effect.sync(unwatch)
  })

/** The forced shutdown, with a listener until the scope closes: a second signal forces the shutdown only if there is one. */
export const listenForced: Effect.Effect<Shutdown, never, Scope.Scope> = Effect.tap(
  CurrentForcedShutdown,
  (forced) => Effect.acquireRelease(Effect.sync(() => forced.watch(() => undefined)), (unwatch) => Effect.sync(unwatch))
)
