/**
 * The requests that hold and wait for slots of one pool, or of several pools together.
 *
 * The one thing to know: a request holds at most one slot. It may wait in several pools concurrently, with one place in each; the first
 * slot that it can use is granted, and its other places go in the same call. Places are ordered by the arrival of the request, also
 * those that it takes later (`widen`).
 *
 * A call costs O(log n) in waiters for each place, and each grant to a waiter looks at the first waiter of every pool. A request has
 * at most as many places as targets, of which the configuration bounds the number, as it does that of pools.
 */
import type { HeapEntry } from "./heap.ts"
import type { Queued, WaitQueue } from "./waitQueue.ts"

/**
 * `ready`: in rotation. `cooling`: not used before a time. `out`: not used until a try shows that the account works again.
 */
export type SlotState = "ready" | "cooling" | "out"

/** One account of the pool, with as many slots as the limit says. */
export interface Slot<out A> {
  readonly key: string
  /** The account as last configured. */
  readonly account: A
  readonly inUse: number
  readonly state: SlotState
  /** When a `cooling` account returns, or an `out` account is tried again; in milliseconds. */
  readonly until: number
  /** Its state apart from its budgets. */
  readonly health: SlotState
  readonly healthUntil: number
  /** Until when its upstream wants no request, in milliseconds; 0 if that is no later than `healthUntil`. */
  readonly stated: number
  /** When the window of a used-up budget ends, in milliseconds; 0 while its budgets have something left. */
  readonly spent: number
  /** False once the account has left the configuration; its leases run to their end. */
  readonly member: boolean
  /** False while the operator has disabled the account: it is never granted, whatever its state. */
  readonly enabled: boolean
  /** Whether the account is in rotation with spare capacity. */
  readonly available: boolean
}

/** What a request asks for. */
export type LeaseRequest =
  /** Any account. Accounts in `avoid` come last, and only while no other account is in rotation. */
  | { readonly _tag: "Any"; readonly avoid: ReadonlySet<string> }
  /** Only this account. */
  | { readonly _tag: "Pinned"; readonly key: string }
  /** No account, only a share of the global limit: a direct caller. */
  | { readonly _tag: "Direct" }

/** What a request needs of an account beside a slot: an account that does not suit it is not granted to it. */
export interface Needs<in A> {
  /** Requests of one id need the same. */
  readonly id: string
  /**
   * When an account suits the request, in milliseconds: 0 for now. `never` is added to the time of one whose budget is smaller than the
   * request; infinity, of one that it has failed on.
   */
  readonly suitsAt: (account: A) => number
  /** Reserves what the request needs of an account that suits it, in the step of the grant. */
  readonly reserve: (account: A) => void
}

/** Later than every time, in milliseconds. */
export const never = 2 ** 45

/** Why a request gets no slot. */
export type Refusal =
  /** All slots are in use and the queue is full. */
  | { readonly _tag: "Full" }
  /** Every account that may serve is cooling, and the first one returns too late. */
  | { readonly _tag: "Cooling"; readonly until: number }
  /** There is no account, or every account that may serve is out of rotation or disabled. */
  | { readonly _tag: "Unavailable" }
  /** The pinned account is not configured, or has left the configuration. */
  | { readonly _tag: "Unknown" }
  /** The time in the queue is over. */
  | { readonly _tag: "Late" }
  /** The gateway is stopping. */
  | { readonly _tag: "Closing" }

/** One request's claim, from `request` to `close`. */
export interface Waiter<out A> {
  readonly state: "waiting" | "granted" | "closed"
  /** The granted account; `undefined` while waiting, and for `Direct`. */
  readonly slot: Slot<A> | undefined
  /** The pool of the slot; `undefined` while waiting. */
  readonly granted: { readonly name: string } | undefined
}

/** Called once when a waiter is granted (`undefined`) or refused, never after `close`. It may call back. */
export type Notify = (refusal: Refusal | undefined) => void

/** The waiters with one purpose in a pool. */
type Places<A> = WaitQueue<Place<A>, unknown>

/** What the queue needs of a pool. */
export interface QueuedPool<A> {
  readonly name: string
  /** The queue of a request's purpose; `undefined` if it is pinned to an unknown account. */
  queueOf(request: LeaseRequest, needs: Needs<A> | undefined): Places<A> | undefined
  /** Why the pool cannot serve a purpose before a time; `undefined` if it can. At the time 0 the purpose has an account in rotation. */
  refusalFor(queue: Places<A>, deadline: number): Refusal | undefined
  /** The account that a purpose is pinned to. */
  pinnedTo(queue: Places<A>): Slot<A> | undefined
  /** Whether the pool has a slot for a purpose now. */
  canServe(queue: Places<A>): boolean
  /** The share of its slots in rotation that are free. */
  freeShare(): number
  hasPlace(queue: Places<A>): boolean
  join(queue: Places<A>, place: Place<A>): void
  leave(place: Place<A>): void
  /** Takes the slot for a purpose, of the preferred account if that has one; `undefined` for a direct caller, who needs no account. */
  take(queue: Places<A>, preferred: string | undefined): Slot<A> | undefined
  giveBack(slot: Slot<A> | undefined): void
  /** Refuses the waiters of accounts that one request tries, as far as no account serves them in time. */
  refuseTried(): void
  /** The oldest place that the pool can serve now. */
  next(): Place<A> | undefined
  /** Whether requests that have another pool leave this one out. `probe`: from the next grant on. */
  skipped: Skipped
  /** Takes a place out of its queue without giving it up, and back to where its number belongs. */
  park(place: Place<A>): void
  unpark(place: Place<A>): void
  /** The waiters that have their only place here and would take others. */
  readonly holding: Set<WaiterNode<A>>
}

/** Whether a pool is left out; `probe`: it is, once it has granted one more slot. */
export type Skipped = "no" | "probe" | "yes"

/** Options of a request for several pools. */
export interface Choice<in A> {
  /** `order`: the first pool with a slot. `even`: the one with the largest share of free slots; the first of equal ones. */
  readonly spread: "order" | "even"
  /** While the first pool is in rotation and full, the request waits there alone, until `widen`. */
  readonly hold: boolean
  /** The account that is taken where the chosen pool has a slot of it. */
  readonly preferred: string | undefined
  readonly needs: Needs<A> | undefined
}

const inOrder: Choice<unknown> = { spread: "order", hold: false, preferred: undefined, needs: undefined }

const full: Refusal = { _tag: "Full" }
const late: Refusal = { _tag: "Late" }
/** The refusal of a request that no account may serve. */
export const unavailable: Refusal = { _tag: "Unavailable" }
/** The refusal of a request that is pinned to an account that is not configured. */
export const unknownAccount: Refusal = { _tag: "Unknown" }

/** The refusal of two pools: the one that says when to come back, and the earlier time. */
const soonerRetry = (one: Refusal | undefined, other: Refusal): Refusal => {
  if (one === undefined) return other
  if (one._tag !== "Cooling") return other._tag === "Cooling" ? other : one
  return other._tag === "Cooling" && other.until < one.until ? other : one
}

/** The place of a waiter in a queue of one pool. */
export abstract class Place<A> implements Queued<Place<A>> {
  /** The queue that it is in; `undefined` before and after. */
  queue: Places<A> | undefined = undefined
  pool: QueuedPool<A> | undefined = undefined
  previous: Place<A> | undefined = undefined
  next: Place<A> | undefined = undefined
  early: HeapEntry<Place<A>> | undefined = undefined
  /** The pool is skipped, and the waiter has a place in another one. */
  parked = false
  number = 0
  deadline = 0
  abstract get waiter(): WaiterNode<A>
}

class FurtherPlace<A> extends Place<A> {
  readonly #waiter: WaiterNode<A>

  constructor(waiter: WaiterNode<A>) {
    super()
    this.#waiter = waiter
    this.number = waiter.number
    this.deadline = waiter.deadline
  }

  get waiter(): WaiterNode<A> {
    return this.#waiter
  }
}

/** A request, and its first place. */
class WaiterNode<A> extends Place<A> implements Waiter<A> {
  state: "waiting" | "granted" | "closed" = "waiting"
  slot: Slot<A> | undefined = undefined
  /** The pool whose slot it holds. */
  granted: QueuedPool<A> | undefined = undefined
  since = 0
  about = ""
  notify: Notify | undefined = undefined
  further: Array<Place<A>> | undefined = undefined
  /** Where it takes places once it is widened. */
  later: { readonly request: LeaseRequest; readonly pools: ReadonlyArray<QueuedPool<A>> } | undefined = undefined
  spread: Choice<A>["spread"] = "order"
  preferred: string | undefined = undefined
  needs: Needs<A> | undefined = undefined
  /** What the pools said whose places it has given up. */
  lost: Refusal | undefined = undefined

  get waiter(): this {
    return this
  }

  /** Its places, in the order of its pools: of most requests one. */
  places(): ReadonlyArray<Place<A>> {
    const all: Array<Place<A>> = this.queue === undefined ? [] : [this]
    if (this.further !== undefined) { for (const place of this.further) if (place.queue !== undefined) all.push(place) }
    return all
  }
}

/** The requests of one or several pools. */
export class PoolQueue<A> {
  /** The most slots in use over all pools. */
  limit = Number.POSITIVE_INFINITY
  /** The time of the last request or recovery, in milliseconds. */
  now = 0
  /** Pools of which waiters may have lost an account that one request tries. */
  readonly tried = new Set<QueuedPool<A>>()
  /** All waiters, in the order of arrival. */
  readonly waiters = new Set<WaiterNode<A>>()
  /** Is called when waiters may be served at another time than before, if set. */
  due: (() => void) | undefined = undefined
  /** Set by a pool to have `due` called. */
  isDue = false
  /** By name. */
  readonly pools = new Map<string, QueuedPool<A>>()
  /** Waiters that are granted or refused and not yet notified. */
  readonly #outcomes: Array<readonly [WaiterNode<A>, Refusal | undefined]> = []
  #serving = false
  #notifying = false
  #inUse = 0
  #numbered = 0

  /** Slots in use over all pools. */
  get inUse(): number {
    return this.#inUse
  }

  /**
   * Asks for a slot of one of `pools`, in order of preference: returns a granted waiter, a waiter that `notify` reports on, or a
   * refusal. A pool that cannot serve the request before `now + patience` gets no place, and neither does one whose queue is full.
   */
  request(
    pools: ReadonlyArray<QueuedPool<A>>,
    request: LeaseRequest,
    now: number,
    patience: number,
    notify: Notify,
    about: string,
    { hold, needs, preferred, spread }: Choice<A> = inOrder
  ): WaiterNode<A> | Refusal {
    this.now = now
    const deadline = now + patience
    const able: Array<QueuedPool<A>> = []
    const queues: Array<Places<A>> = []
    let refusal: Refusal | undefined
    for (const pool of pools) {
      const queue = pool.queueOf(request, needs)
      const why = queue === undefined ? unknownAccount : pool.refusalFor(queue, deadline)
      if (queue !== undefined && why === undefined) {
        able.push(pool)
        queues.push(queue)
      } else if (why !== undefined) refusal = soonerRetry(refusal, why)
    }
    const [first] = able
    const [firstQueue] = queues
    if (first === undefined || firstQueue === undefined) return refusal ?? unavailable

    const waiter = new WaiterNode<A>()
    waiter.preferred = preferred
    waiter.needs = needs
    const holds = hold && able.length > 1 && first === pools[0] && first.skipped !== "yes" &&
      first.refusalFor(firstQueue, 0) === undefined && !this.#canServe(first, firstQueue) && first.hasPlace(firstQueue)
    const chosen = holds ? -1 : this.#choose(able, queues, spread)
    if (chosen !== -1) {
      const pool = able[chosen]!
      const probes = pool.skipped === "probe"
      this.#give(waiter, pool, queues[chosen]!)
      // Waiters that have skipped pools alone may use them now.
      if (probes) this.serve()
      return waiter
    }
    waiter.number = ++this.#numbered
    waiter.since = now
    waiter.deadline = deadline
    waiter.about = about
    waiter.notify = notify
    waiter.spread = spread
    // A pool reports the change of its queue immediately, and its receiver may read the waiters.
    this.waiters.add(waiter)
    if (holds) {
      waiter.later = { request, pools: able.slice(1) }
      first.holding.add(waiter)
      this.#join(waiter, first, firstQueue)
    } else {
      for (let i = 0; i < able.length; i++) {
        if (able[i]!.hasPlace(queues[i]!)) this.#join(waiter, able[i]!, queues[i]!)
      }
      this.#settle(waiter)
    }
    if (waiter.queue !== undefined) {
      // The pools learn from what time on an account suits it.
      if (needs !== undefined) this.serve()
      return waiter
    }
    this.waiters.delete(waiter)
    return this.#refusalNow(able, queues, now, refusal)
  }

  /** The refusal of a request without a place: `Full` if an account in rotation has a full queue. */
  #refusalNow(
    pools: ReadonlyArray<QueuedPool<A>>,
    queues: ReadonlyArray<Places<A>>,
    now: number,
    others: Refusal | undefined
  ): Refusal {
    let refusal = others
    for (let i = 0; i < pools.length; i++) {
      const why = pools[i]!.refusalFor(queues[i]!, now)
      if (why === undefined) return full
      refusal = soonerRetry(refusal, why)
    }
    return refusal ?? full
  }

  /** Gives the slot back, or leaves every queue. Only the first call has an effect. */
  close(waiter: Waiter<A>): void {
    const node = waiter as WaiterNode<A>
    const { granted, state } = node
    node.state = "closed"
    node.notify = undefined
    if (state === "waiting") {
      this.#leave(node)
      return
    }
    if (state !== "granted" || granted === undefined) return
    this.#inUse--
    granted.giveBack(node.slot)
    this.serve()
  }

  /** The refusal of a waiter whose time is over: `Late`, or what keeps the accounts of all its pools out of rotation. */
  late(waiter: Waiter<A>): Refusal {
    const node = waiter as WaiterNode<A>
    if (node.state !== "waiting" || node.later !== undefined) return late
    let refusal = node.lost
    for (const place of node.places()) {
      const why = place.pool!.refusalFor(place.queue!, Number.NEGATIVE_INFINITY)
      if (why === undefined) return late
      refusal = soonerRetry(refusal, why)
    }
    return refusal ?? late
  }

  /** Ends the hold of a waiter at its first pool: it takes its other places, by its arrival. */
  widen(waiter: Waiter<A>): void {
    const node = waiter as WaiterNode<A>
    if (node.state !== "waiting") return
    this.#widen(node)
    this.serve()
  }

  /** Widens the waiters that hold at a pool that is out of rotation. */
  release(pool: QueuedPool<A>): void {
    for (const waiter of pool.holding) this.#widen(waiter)
  }

  #widen(waiter: WaiterNode<A>): void {
    const { later } = waiter
    if (later === undefined) return
    this.#forget(waiter)
    for (const { name } of later.pools) {
      // What is behind a name is as configured now.
      const pool = this.pools.get(name)
      const queue = pool?.queueOf(later.request, waiter.needs)
      const why = pool === undefined
        ? unavailable
        : queue === undefined
        ? unknownAccount
        : pool.refusalFor(queue, waiter.deadline)
      if (why !== undefined) waiter.lost = soonerRetry(waiter.lost, why)
      else if (pool !== undefined && queue !== undefined && pool.hasPlace(queue)) this.#join(waiter, pool, queue)
    }
    this.#settle(waiter)
  }

  #forget(waiter: WaiterNode<A>): void {
    if (waiter.later === undefined) return
    waiter.later = undefined
    for (const place of waiter.places()) place.pool!.holding.delete(waiter)
  }

  /** Leaves a pool out, or takes it in again. Costs O(log n) for each waiter that has a place in it and another one. */
  skip(pool: QueuedPool<A>, skipped: Skipped): void {
    this.#skip(pool, skipped)
    this.serve()
  }

  #skip(pool: QueuedPool<A>, skipped: Skipped): void {
    pool.skipped = skipped
    if (skipped === "yes") this.release(pool)
    for (const waiter of this.waiters) this.#settle(waiter)
  }

  /** Parks the places of a waiter in skipped pools while it has a place in another one. */
  #settle(waiter: WaiterNode<A>): void {
    if (waiter.further === undefined) return
    const places = waiter.places()
    const hasOther = places.some(({ pool }) => pool!.skipped !== "yes")
    for (const place of places) {
      const pool = place.pool!
      const parks = hasOther && pool.skipped === "yes"
      if (parks === place.parked || place.queue === undefined) continue
      if (parks) {
        pool.park(place)
        continue
      }
      const why = pool.refusalFor(place.queue, waiter.deadline)
      if (why === undefined) pool.unpark(place)
      else return this.giveUp(place, why)
    }
  }

  /** Gives up the place of a waiter in a pool, or the one that it would take. A waiter without any is refused. */
  drop(waiter: Waiter<A>, pool: QueuedPool<A>): void {
    const node = waiter as WaiterNode<A>
    if (node.state !== "waiting") return
    const { later } = node
    if (later !== undefined) node.later = { ...later, pools: later.pools.filter(({ name }) => name !== pool.name) }
    for (const place of node.places()) {
      if (place.pool === pool) {
        this.giveUp(place, unavailable)
        break
      }
    }
    this.serve()
  }

  /** Gives up a place. The last one of a waiter refuses it, unless it takes its other places. */
  giveUp(place: Place<A>, refusal: Refusal): void {
    const { waiter } = place
    waiter.lost = soonerRetry(waiter.lost, refusal)
    this.#widen(waiter)
    place.pool!.leave(place)
    if (waiter.places().length > 0) return this.#settle(waiter)
    this.waiters.delete(waiter)
    waiter.state = "closed"
    this.#outcomes.push([waiter, waiter.lost])
  }

  #join(waiter: WaiterNode<A>, pool: QueuedPool<A>, queue: Places<A>): void {
    let place: Place<A> = waiter
    if (waiter.queue !== undefined || waiter.further !== undefined) {
      place = new FurtherPlace(waiter)
      waiter.further ??= []
      waiter.further.push(place)
    }
    place.pool = pool
    pool.join(queue, place)
  }

  #leave(waiter: WaiterNode<A>): void {
    this.#forget(waiter)
    this.waiters.delete(waiter)
    for (const place of waiter.places()) place.pool!.leave(place)
  }

  #give(waiter: WaiterNode<A>, pool: QueuedPool<A>, queue: Places<A>): void {
    waiter.state = "granted"
    waiter.granted = pool
    this.#inUse++
    const slot = waiter.slot = pool.take(queue, waiter.preferred)
    if (slot !== undefined) waiter.needs?.reserve(slot.account)
    if (pool.skipped === "probe") this.#skip(pool, "yes")
  }

  #canServe(pool: QueuedPool<A>, queue: Places<A>): boolean {
    return this.#inUse < this.limit && pool.canServe(queue)
  }

  /**
   * The index of the pool that serves a request now; -1 if it must wait. Skipped pools count only if no other one has a slot or a
   * place in its queue.
   */
  #choose(pools: ReadonlyArray<QueuedPool<A>>, queues: ReadonlyArray<Places<A>>, spread: Choice<A>["spread"]): number {
    if (this.#inUse >= this.limit) return -1
    let hasOther = false
    for (let i = 0; i < pools.length; i++) {
      const pool = pools[i]!
      hasOther ||= pool.skipped !== "yes" && (pool.canServe(queues[i]!) || pool.hasPlace(queues[i]!))
    }
    let best = -1
    let share = Number.NEGATIVE_INFINITY
    for (let i = 0; i < pools.length; i++) {
      const pool = pools[i]!
      if ((hasOther && pool.skipped === "yes") || !pool.canServe(queues[i]!)) continue
      if (spread === "order") return i
      const free = pool.freeShare()
      if (free > share) {
        best = i
        share = free
      }
    }
    return best
  }

  /** The place of the oldest waiter that can be served now. */
  #next(): Place<A> | undefined {
    let oldest: Place<A> | undefined
    for (const pool of this.pools.values()) {
      const place = pool.next()
      if (place !== undefined && (oldest === undefined || place.number < oldest.number)) oldest = place
    }
    return oldest
  }

  /** Gives the free capacity to waiters in order, then notifies all that were granted or refused. */
  serve(): void {
    // What a grant reserves may change states: the grants that follow are made below.
    if (this.#serving || (this.waiters.size === 0 && this.tried.size === 0 && this.#outcomes.length === 0)) return
    this.#serving = true
    while (this.waiters.size > 0 && this.#inUse < this.limit) {
      const place = this.#next()
      if (place === undefined) break
      const { waiter } = place
      const places = waiter.further === undefined ? [place] : waiter.places().filter(({ parked }) => !parked)
      const pools = places.map((place) => place.pool!)
      const queues = places.map((place) => place.queue!)
      const chosen = this.#choose(pools, queues, waiter.spread)
      this.#leave(waiter)
      this.#give(waiter, pools[chosen]!, queues[chosen]!)
      this.#outcomes.push([waiter, undefined])
    }
    for (const pool of this.tried) pool.refuseTried()
    this.tried.clear()
    this.#serving = false
    if (this.isDue) {
      this.isDue = false
      this.due?.()
    }
    if (this.#outcomes.length > 0 && !this.#notifying) this.#notify()
  }

  /** `notify` may call back, so it runs when the state is consistent, and never within itself. */
  #notify(): void {
    this.#notifying = true
    for (let i = 0; i < this.#outcomes.length; i++) {
      const [waiter, refusal] = this.#outcomes[i]!
      const notify = waiter.notify
      waiter.notify = undefined
      if (notify !== undefined) notify(refusal)
    }
    this.#outcomes.length = 0
    this.#notifying = false
  }
}
