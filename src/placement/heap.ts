/**
 * A binary min-heap whose entries know their positions, so that any entry can be moved or removed in O(log n).
 */

/** An entry belongs to at most one heap; `position` is -1 outside of a heap. */
export interface HeapEntry<out A> {
  readonly value: A
  /** The heap's order; changed only by `Heap.put`. */
  key: number
  position: number
}

/** Makes an entry outside of a heap. */
export const heapEntry = <A>(value: A): HeapEntry<A> => ({ value, key: 0, position: -1 })

/** The entry with the smallest key is the first; the order of equal keys is undefined. */
export class Heap<A> {
  readonly #entries: Array<HeapEntry<A>> = []

  get size(): number {
    return this.#entries.length
  }

  /** The values, in no order. The heap may change meanwhile. */
  values(): ReadonlyArray<A> {
    return this.#entries.map(({ value }) => value)
  }

  /** The first entry. O(1). */
  peek(): HeapEntry<A> | undefined {
    return this.#entries[0]
  }

  /** The first entry whose value `accept` accepts. Examines at most one entry more than twice those that it rejects. */
  first(accept: (value: A) => boolean, from: number = 0): HeapEntry<A> | undefined {
    const entry = this.#entries[from]
    if (entry === undefined || accept(entry.value)) return entry
    const left = this.first(accept, 2 * from + 1)
    const right = this.first(accept, 2 * from + 2)
    return left === undefined || (right !== undefined && right.key < left.key) ? right : left
  }

  /** Inserts an entry with `key`, or moves it there. */
  put(entry: HeapEntry<A>, key: number): void {
    if (entry.position === -1) {
      entry.key = key
      entry.position = this.#entries.length
      this.#entries.push(entry)
      this.#up(entry)
      return
    }
    const earlier = key < entry.key
    entry.key = key
    if (earlier) this.#up(entry)
    else this.#down(entry)
  }

  /** Removes an entry; has no effect outside of a heap. */
  remove(entry: HeapEntry<A>): void {
    const position = entry.position
    if (position === -1) return
    entry.position = -1
    const last = this.#entries.pop()!
    if (last === entry) return
    last.position = position
    this.#entries[position] = last
    this.#up(last)
    this.#down(last)
  }

  #up(entry: HeapEntry<A>): void {
    const entries = this.#entries
    let position = entry.position
    while (position > 0) {
      const above = (position - 1) >> 1
      const parent = entries[above]!
      if (parent.key <= entry.key) break
      entries[position] = parent
      parent.position = position
      position = above
    }
    entries[position] = entry
    entry.position = position
  }

  #down(entry: HeapEntry<A>): void {
    const entries = this.#entries
    const size = entries.length
    let position = entry.position
    for (;;) {
      let below = 2 * position + 1
      if (below >= size) break
      const right = below + 1
      if (right < size && entries[right]!.key < entries[below]!.key) below = right
      const child = entries[below]!
      if (child.key >= entry.key) break
      entries[position] = child
      child.position = position
      position = below
    }
    entries[position] = entry
    entry.position = position
  }
}
