/**
 * Bounds what all records hold together. Over the total the oldest finished records lose their bodies first, those of refused
 * requests before all others; then those that run record no more.
 */

/** A record as the ledger sees it. */
export interface Holder {
  /** Lets go of its bodies, and gives back all that it took for them. */
  readonly forgetBodies: () => void
}

export class Ledger {
  readonly #most: () => number
  #held = 0
  /** Finished ones that hold something, in the order in which they finished. */
  readonly #finished = new Set<Holder>()
  /** The same of refused requests. */
  readonly #refused = new Set<Holder>()

  /** `most`: bytes that may be held in all, by the configuration in effect. */
  constructor(most: () => number) {
    this.#most = most
  }

  /** Bytes that are held. */
  get held(): number {
    return this.#held
  }

  /** Takes room for `bytes`; false, and nothing taken, where there is none. */
  take(bytes: number): boolean {
    const room = this.#most() - bytes
    if (this.#held > room) this.#forget(room)
    if (this.#held > room) return false
    this.#held += bytes
    return true
  }

  give(bytes: number): void {
    this.#held -= bytes
  }

  /** Says that a record is over: from now on it may lose its bodies. */
  finished(holder: Holder, isRefused = false): void {
    const finished = isRefused ? this.#refused : this.#finished
    finished.add(holder)
  }

  /** Says that a record is gone, or holds nothing any more. */
  left(holder: Holder): void {
    this.#finished.delete(holder)
    this.#refused.delete(holder)
  }

  /** Keeps within a total that became smaller, as far as finished records hold it. */
  trim(): void {
    if (this.#held > this.#most()) this.#forget(this.#most())
  }

  #forget(room: number): void {
    for (const finished of [this.#refused, this.#finished]) {
      for (const holder of finished) {
        if (this.#held <= room) return
        finished.delete(holder)
        holder.forgetBodies()
      }
    }
  }
}
