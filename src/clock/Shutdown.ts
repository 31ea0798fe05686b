/**
 * The moment in which what still runs is ended, since the process stops: the drain's time is over, or it was told to hurry.
 */
import * as Context from "effect/Context"

/** Tells once, and at once, everybody who watches. Watchers must not throw. */
export class Shutdown {
  private over = false
  private readonly watchers = new Set<() => void>()

  /** Whether the moment has come. */
  get isOver(): boolean {
    return this.over
  }

  /** Whether anybody would be told. */
  get isWatched(): boolean {
    return this.watchers.size > 0
  }

  /** The moment has come. */
  now(): void {
    if (this.over) return
    this.over = true
    for (const watcher of this.watchers) watcher()
    this.watchers.clear()
  }

  /** Calls `watcher` at that moment, unless what is returned was called before. */
  watch(watcher: () => void): () => void {
    this.watchers.add(watcher)
    return () => void this.watchers.delete(watcher)
  }
}

/** When requests that run are ended; never, unless whoever serves says so. */
export const CurrentShutdown = Context.Reference<Shutdown>("model-gateway/clock/Shutdown", {
  defaultValue: () => new Shutdown()
})

/** When a drain is to go no further, since the operator has asked twice. */
export const CurrentHurry = Context.Reference<Shutdown>("model-gateway/clock/Hurry", {
  defaultValue: () => new Shutdown()
})
