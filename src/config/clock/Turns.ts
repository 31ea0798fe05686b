/**
 * An order for work that must not keep others waiting: a little of it in each turn of the event loop, first come, first served.
 * Everything else is served between two turns.
 *
 * Holds one entry for each function that waits; what joins bounds their number.
 */
export class Turns {
  private readonly waiting = new Set<() => void>()
  private readonly most: number
  private isScheduled = false

  /** `most` functions are called in one turn of the event loop. */
  constructor(most: number) {
    this.most = most
  }

  /** Calls `serve` when its turn comes. A function that waits already keeps its place. */
  join(serve: () => void): void {
    this.waiting.add(serve)
    this.schedule()
  }

  leave(serve: () => void): void {
    this.waiting.delete(serve)
  }

  private schedule(): void {
    if (this.isScheduled || this.waiting.size === 0) return
    this.isScheduled = true
    setImmediate(this.turn)
  }

  private readonly turn = (): void => {
    this.isScheduled = false
    let served = 0
    for (const serve of this.waiting) {
      if (served++ === this.most) break
      this.waiting.delete(serve)
      serve()
    }
    this.schedule()
  }
}
