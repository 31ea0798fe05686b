/**
 * The pools of several upstreams, whose requests are one: a request names pools, and gets exactly one slot of one of them.
 *
 * Like `PoolState`, it is synchronous and pure: times are arguments. A pool has its own limits, rotation and queue; `limit` bounds the
 * slots of all pools together, and a request that waits in several queues counts once.
 */
import type { Cooperative } from "../domain/stream/cooperative.ts"
import type { PoolChoice } from "./choice.ts"
import { type Choice, type Notify, type Place, PoolQueue, type Skipped } from "./poolQueue.ts"
import {
  type LeaseRequest,
  type Limits,
  type PoolChanges,
  PoolState,
  type Refusal,
  type Slot,
  type Waiter
} from "./PoolState.ts"

/** The pool of one upstream, as configured. */
export interface PoolConfig<in out A> {
  /** By key; keys are unique over all pools. */
  readonly accounts: ReadonlyMap<string, A>
  /** `global` bounds the slots of this pool. */
  readonly limits: Limits
  /** The accounts that the operator has disabled. */
  readonly disabled: ReadonlySet<string>
  /** False while the operator has disabled the upstream: it serves no request. */
  readonly enabled: boolean
  /** How it chooses among its accounts; in rotation without it. */
  readonly choice: PoolChoice<A> | undefined
}

/** A request for a slot of one of several pools. */
export interface PoolsRequest<in A> extends Choice<A> {
  /** Names of pools, in order of preference, each once. Unknown ones are left out. */
  readonly pools: ReadonlyArray<string>
  /** A pin names an account of one of the pools. */
  readonly request: LeaseRequest
  /** In milliseconds, as is `patience`. */
  readonly now: number
  readonly patience: number
  /** Describes the request in the queue status. */
  readonly about: string
}

/** A request that waits. */
export interface WaitingRequest<out A> {
  readonly since: number
  readonly about: string
  /** The pools in whose queues it has a place. */
  readonly pools: ReadonlyArray<string>
  /** The account that it is pinned to. */
  readonly pinned: Slot<A> | undefined
}

export class Pools<A> {
  readonly #queue = new PoolQueue<A>()
  readonly #pools = new Map<string, PoolState<A>>()
  /** Pools that have left the configuration and still have leases. */
  readonly #leaving = new Map<string, PoolState<A>>()
  #changes: PoolChanges<A> | undefined

  /** Slots in use over all pools. */
  get inUse(): number {
    return this.#queue.inUse
  }
  /** Waiting requests. */
  get waiting(): number {
    return this.#queue.waiters.size
  }
  /** Names of pools that have left the configuration and still have leases. */
  get leaving(): IterableIterator<string> {
    return this.#leaving.keys()
  }
  /** The earliest time at which `recover` has work; infinity without any. */
  get nextRecovery(): number {
    let first = Number.POSITIVE_INFINITY
    for (const pool of this.#pools.values()) first = Math.min(first, pool.nextRecovery)
    return first
  }

  /** Is called when `recover` may have work at another time than before, if set. */
  set due(due: () => void) {
    this.#queue.due = due
  }
  /** The most slots in use over all pools. */
  get limit(): number {
    return this.#queue.limit
  }
  /** Receives the changes of all pools, if set. */
  set changes(changes: PoolChanges<A> | undefined) {
    this.#changes = changes
    for (const pool of this.all()) pool.changes = changes
  }

  /** The configured pools, then those that are leaving. */
  *all(): IterableIterator<PoolState<A>> {
    yield* this.#pools.values()
    yield* this.#leaving.values()
  }
  /** The configured pools. */
  configured(): IterableIterator<PoolState<A>> {
    return this.#pools.values()
  }

  /** A configured pool. */
  get(name: string): PoolState<A> | undefined {
    return this.#pools.get(name)
  }

  /** The waiting requests, the oldest first. */
  *queued(): IterableIterator<WaitingRequest<A>> {
    for (const waiter of this.#queue.waiters) {
      const places = [...waiter.places()]
      const [{ pool, queue }] = places as [Place<A>]
      const pools = places.map(({ pool }) => pool!.name)
      yield { since: waiter.since, about: waiter.about, pools, pinned: pool!.pinnedTo(queue!) }
    }
  }

  /**
   * Asks for a slot: returns a granted waiter, a waiter that `notify` reports on, or a refusal. The caller calls `widen` once the hold
   * at the first pool is over, and `close` when it stops waiting or gives the slot back.
   */
  request({ about, now, patience, pools, request, ...choice }: PoolsRequest<A>, notify: Notify): Waiter<A> | Refusal {
    const configured = pools.flatMap((name) => this.#pools.get(name) ?? [])
    // The first pool of the request holds it, never the one that follows a pool which is not configured.
    const hold = choice.hold && this.#pools.has(pools[0] ?? "")
    return this.#queue.request(configured, request, now, patience, notify, about, { ...choice, hold })
  }

  /** Gives the slot back, or leaves every queue. Only the first call has an effect. */
  close(waiter: Waiter<A>): void {
    this.#queue.close(waiter)
    const name = waiter.granted?.name
    const pool = name === undefined ? undefined : this.#leaving.get(name)
    if (pool !== undefined) this.#forgetEmpty(pool)
  }

  /** The refusal of a waiter whose time is over: `Late`, or what keeps the accounts of all its pools out of rotation. */
  late(waiter: Waiter<A>): Refusal {
    return this.#queue.late(waiter)
  }

  /** Ends the hold of a waiter at its first pool: it takes its other places, by its arrival. */
  widen(waiter: Waiter<A>): void {
    this.#queue.widen(waiter)
  }

  /** Gives up the place of a waiter in a pool, whose upstream no longer has the model. A waiter without any place is refused. */
  drop(waiter: Waiter<A>, name: string): void {
    const pool = this.#pools.get(name)
    if (pool !== undefined) this.#queue.drop(waiter, pool)
  }

  /**
   * Leaves a pool out, whose upstream is cooled, or takes it in again. Requests that have another pool take no slot of it; their
   * places there stay. After `probe`, one more request takes a slot of it before it is left out again.
   */
  skip(name: string, skipped: Skipped): void {
    const pool = this.#pools.get(name)
    if (pool !== undefined) this.#queue.skip(pool, skipped)
  }

  /** `PoolState.recover` of all pools. */
  recover(now: number): ReadonlyArray<Slot<A>> {
    return Array.from(this.#pools.values(), (pool) => pool.recover(now)).flat()
  }

  /**
   * Applies new pools, by name, and the limit of all. Running leases go on counting, also those of pools that have left. Places in
   * pools that have left or are disabled are given up; a waiter without any other place is refused. Runs in slices, as
   * `PoolState.configure` does.
   */
  *configure(pools: ReadonlyMap<string, PoolConfig<A>>, limit: number): Cooperative<void> {
    this.#queue.limit = limit
    // No grant in between may exceed a new limit of a pool that is configured later.
    for (const [name, pool] of this.#pools) {
      const next = pools.get(name)
      pool.prepare(next?.limits ?? pool.limits, next?.enabled ?? false)
    }
    for (const [name, { accounts, choice, disabled, enabled, limits }] of pools) {
      const pool = this.#pools.get(name) ?? this.#leaving.get(name) ?? new PoolState<A>(limits, this.#queue, name)
      pool.changes = this.#changes
      this.#leaving.delete(name)
      this.#pools.set(name, pool)
      yield* pool.apply(accounts, limits, disabled, enabled, choice)
    }
    for (const [name, pool] of this.#pools) {
      if (pools.has(name)) continue
      this.#pools.delete(name)
      this.#leaving.set(name, pool)
      yield* pool.apply(new Map(), pool.limits, new Set(), false)
      // It has no waiters, and its upstream is a new one if it comes back.
      pool.skipped = "no"
      this.#forgetEmpty(pool)
    }
    this.#queue.serve()
  }

  #forgetEmpty(pool: PoolState<A>): void {
    if (pool.inUse > 0) return
    this.#leaving.delete(pool.name)
    this.#queue.pools.delete(pool.name)
  }
}
