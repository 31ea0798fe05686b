/**
 * Waiters with the same purpose, first come first served, as a doubly linked list: `join`, `leave` and `head` are O(1).
 * Waiters are numbered across all queues, so that the oldest of several queues can be found.
 */
import { type HeapEntry, heapEntry } from "./heap.ts"

/** A waiter in a queue. */
export interface Queued<W extends Queued<W>> {
  /** The order of arrival over all queues; rises within one queue. */
  readonly number: number
  previous: W | undefined
  next: W | undefined
}

/** `purpose` is what all waiters of the queue wait for. */
export class WaitQueue<W extends Queued<W>, P> {
  readonly purpose: P
  /** Place among the queues that can be served, by the number of the first waiter. */
  readonly entry: HeapEntry<WaitQueue<W, P>> = heapEntry(this)
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

  /** Takes out a waiter that is in this queue. */
  leave(waiter: W): void {
    if (waiter.previous === undefined) this.#head = waiter.next
    else waiter.previous.next = waiter.next
    if (waiter.next === undefined) this.#tail = waiter.previous
    else waiter.next.previous = waiter.previous
    waiter.previous = undefined
    waiter.next = undefined
  }
}
