/**
 * Waiters with the same purpose, first come first served, as a doubly linked list: `join`, `leave` and `head` are O(1).
 * Waiters are numbered across all queues, so that the oldest of several queues can be found. A waiter that joins behind later
 * ones gets the place of its number; it is in a heap, where `join` and `leave` are O(log n).
 */
import { Heap, type HeapEntry, heapEntry } from "./heap.ts"

/** A waiter in a queue. */
export interface Queued<W extends Queued<W>> {
  /** The order of arrival over all queues. */
  readonly number: number
  /** Its entry in the heap of waiters that came before others in the list. */
  early: HeapEntry<W> | undefined
  previous: W | undefined
  next: W | undefined
}

/** `purpose` is what all waiters of the queue wait for. */
export class WaitQueue<W extends Queued<W>, P> {
  readonly purpose: P
  /** Place among the queues that can be served, by the number of the first waiter, or among those that are `blocked`, by a time. */
  readonly entry: HeapEntry<WaitQueue<W, P>> = heapEntry(this)
  /** Nothing that is free suits the purpose. */
  isBlocked = false
  #head: W | undefined = undefined
  #tail: W | undefined = undefined
  #early: Heap<W> | undefined = undefined

  constructor(purpose: P) {
    this.purpose = purpose
  }

  /** The first waiter. */
  get head(): W | undefined {
    const early = this.#early?.peek()
    return early === undefined || (this.#head !== undefined && this.#head.number < early.key) ? this.#head : early.value
  }

  /** Adds a waiter, by its number. */
  join(waiter: W): void {
    if (this.#tail !== undefined && this.#tail.number > waiter.number) {
      waiter.early = heapEntry(waiter)
      this.#early ??= new Heap()
      this.#early.put(waiter.early, waiter.number)
      return
    }
    waiter.previous = this.#tail
    if (this.#tail === undefined) this.#head = waiter
    else this.#tail.next = waiter
    this.#tail = waiter
  }

  /** Takes out a waiter that is in this queue. */
  leave(waiter: W): void {
    if (waiter.early !== undefined) {
      this.#early?.remove(waiter.early)
      waiter.early = undefined
      return
    }
    if (waiter.previous === undefined) this.#head = waiter.next
    else waiter.previous.next = waiter.next
    if (waiter.next === undefined) this.#tail = waiter.previous
    else waiter.next.previous = waiter.previous
    waiter.previous = undefined
    waiter.next = undefined
  }
}
