/**
 * Bounds the memory of all request records together. Above the limit, finished records lose their bodies, oldest first and refused
 * requests before all others; then running requests stop recording.
 */

/** A record as the budget sees it. */
export interface Evictable {
  /** Drops its bodies and releases all that it has reserved for them. */
  readonly forgetBodies: () => void
}

export class MemoryBudget {
  readonly #limit: () => number
  #held = 0
  /** Finished records with bodies, in the order in which they finished. */
  readonly #finished = new Set<Evictable>()
  /** The same of refused requests. */
  readonly #refused = new Set<Evictable>()

  /** `limit`: bytes in total, by the current configuration. */
  constructor(limit: () => number) {
    this.#limit = limit
  }

  /** Bytes that are reserved. */
  get held(): number {
    return this.#held
  }

  /** Reserves `bytes`. Returns false, and reserves nothing, at the limit. */
  reserve(bytes: number): boolean {
    const room = this.#limit() - bytes
    if (this.#held > room) this.#evict(room)
    if (this.#held > room) return false
    this.#held += bytes
    return true
  }

  release(bytes: number): void {
    this.#held -= bytes
  }

  /** Marks a record as finished: it may lose its bodies from now on. */
  finished(record: Evictable, isRefused = false): void {
    const finished = isRefused ? this.#refused : this.#finished
    finished.add(record)
  }

  /** Removes a record that is gone or has no bodies. */
  removed(record: Evictable): void {
    this.#finished.delete(record)
    this.#refused.delete(record)
  }

  /** Evicts finished records after the limit was lowered. */
  trim(): void {
    if (this.#held > this.#limit()) this.#evict(this.#limit())
  }

  #evict(room: number): void {
    for (const finished of [this.#refused, this.#finished]) {
      for (const record of finished) {
        if (this.#held <= room) return
        finished.delete(record)
        record.forgetBodies()
      }
    }
  }
}
