/**
 * The store's clock against this node's, as the replies of the store tell it.
 */

export class StoreClock {
  #offset = 0
  #quietLeft = 0

  /** Reads a reply: the store's time and the end of its quiet period; `at` is this node's time of it. All in Unix milliseconds. */
  read(time: number, quiet: number, at: number): void {
    this.#offset = time - at
    this.#quietLeft = quiet - time
  }

  /** Offset of the store's clock from this node's, in milliseconds. */
  get offset(): number {
    return this.#offset
  }

  /** Milliseconds from the last reply until the quiet period ends; not positive without one. */
  get quietLeft(): number {
    return this.#quietLeft
  }
}
