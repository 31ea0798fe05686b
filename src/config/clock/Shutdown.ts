/**
 * The moment in which what still runs is ended, since the process stops: the drain's time is over, or it was told to hurry.
 */
import * as Context from "effect/Context"

/** One who watches, and its place among all of them; -1 once it is told, or watches no more. */
interface Watcher {
  readonly tell: () => void
  place: number
}

/** Tells once, and at once, everybody who watches. Watchers must not throw. */
export class Shutdown {
  private over = false
  /**
   * In no order. Not a `Set`, whose tables V8 links to the ones that follow them: with requests that come and go, what the first
   * generation collects would be kept, all of it, until the whole heap is looked through.
   */
  private readonly watchers: Array<Watcher> = []

  /** Whether the moment has come. */
  get isOver(): boolean {
    return this.over
  }

  /** Whether anybody would be told. */
  get isWatched(): boolean {
    return this.watchers.length > 0
  }

  /** The moment has come. */
  now(): void {
    if (this.over) return
    this.over = true
    // Who is told may end others, which then watch no more.
    for (let watcher = this.watchers.pop(); watcher !== undefined; watcher = this.watchers.pop()) {
      watcher.place = -1
      watcher.tell()
    }
  }

  /** Calls `tell` at that moment, unless what is returned was called before. */
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

/** When requests that run are ended; never, unless whoever serves says so. */
export const CurrentShutdown = Context.Reference<Shutdown>("model-gateway/clock/Shutdown", {
  defaultValue: () => new Shutdown()
})

/** When a drain is to go no further, since the operator has asked twice. */
export const CurrentHurry = Context.Reference<Shutdown>("model-gateway/clock/Hurry", {
  defaultValue: () => new Shutdown()
})
