/**
 * The order in which connections are served that have sent a further request before the reply to the last one: one request each,
 * a few connections in each turn of the event loop. Other connections are served between two turns.
 *
 * Holds at most one entry for each connection.
 */

/** Connections that are served in one turn of the event loop. */
const mostInTurn = 8

export class Turns {
  private readonly waiting = new Set<() => void>()
  private isScheduled = false

  /** Calls `serve` when the connection's turn comes. A connection that waits already keeps its place. */
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
      if (served++ === mostInTurn) break
      this.waiting.delete(serve)
      serve()
    }
    this.schedule()
  }
}
