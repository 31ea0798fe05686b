/**
 * The waiters of one wish, first come first served, as a doubly linked list: joining, leaving and looking at the first
 * are O(1). All lines together are one queue: tickets are numbered across them.
 */
import { type HeapEntry, heapEntry } from "./heap.ts"

/** Someone in a line. */
export interface InLine<W extends InLine<W>> {
  /** Place in the one queue that all lines together are; rises within a line. */
  readonly number: number
  previous: W | undefined
  next: W | undefined
}

/** A line of waiters. `purpose` is what all of them wait for. */
export class Line<W extends InLine<W>, P> {
  readonly purpose: P
  /** Place among the lines that may be served, by the number of the first waiter. */
  readonly entry: HeapEntry<Line<W, P>> = heapEntry(this)
  #head: W | undefined = undefined
  #tail: W | undefined = undefined

  constructor(purpose: P) {
    this.purpose = purpose
  }

  /** The first waiter. */
  get head(): W | undefined {
    return this.#head
  }

  /** Adds a waiter at the end. */
  join(waiter: W): void {
    waiter.previous = this.#tail
    if (this.#tail === undefined) this.#head = waiter
    else this.#tail.next = waiter
    this.#tail = waiter
  }

  /** Takes out a waiter that is in this line. */
  leave(waiter: W): void {
    if (waiter.previous === undefined) this.#head = waiter.next
    else waiter.previous.next = waiter.next
    if (waiter.next === undefined) this.#tail = waiter.previous
    else waiter.next.previous = waiter.previous
    waiter.previous = undefined
    waiter.next = undefined
  }
}
