/**
 * The signal that ends running requests: the drain timeout has passed, or the operator forced the shutdown.
 */
import * as Context from "effect/Context"

/** A listener and its index; -1 once notified or removed. */
interface Watcher {
  readonly tell: () => void
  place: number
}

/** Notifies all listeners once, synchronously. Listeners must not throw. */
export class Shutdown {
  private over = false
  /**
   * Unordered. Not a `Set`, because V8 links its tables to their successors: with a stream of short requests, young
   * garbage would survive until a full collection.
   */
  private readonly watchers: Array<Watcher> = []

  /** Whether the signal was given. */
  get isOver(): boolean {
    return this.over
  }

  /** Whether there are listeners. */
  get isWatched(): boolean {
    return this.watchers.length > 0
  }

  /** Gives the signal. */
  now(): void {
    if (this.over) return
    this.over = true
    // A listener may remove other listeners.
    for (let watcher = this.watchers.pop(); watcher !== undefined; watcher = this.watchers.pop()) {
      watcher.place = -1
      watcher.tell()
    }
  }

  /** Calls `notify` at the signal. The returned function removes the listener. */
  watch(tell: () => void): () => void {
    const watcher: Watcher = { tell, place: this.watchers.length }
    this.watchers.push(watcher)
    return () => this.leave(watcher)
  }

  private leave(watcher: Watcher): void {
    const { place } = watcher
    if (place === -1) return
    watcher.place = -1
    const last = this.watchers.pop()!
    if (last === watcher) return
    last.place = place
    this.watchers[place] = last
  }
}

/** Ends running requests. The default never fires; the server provides its own. */
export const CurrentShutdown = Context.Reference<Shutdown>("model-gateway/clock/Shutdown", {
  defaultValue: () => new Shutdown()
})

/** Ends a drain early, because the operator has asked twice. */
export const CurrentHurry = Context.Reference<Shutdown>("model-gateway/clock/Hurry", {
  defaultValue: () => new Shutdown()
})
