/**
 * The synchronous core of the pool: slots, rotation, limits, the queue, and the state of each account. It uses no Effects,
 * no clock and no randomness: times are arguments, so that tests compare generated interleavings with a plain model.
 *
 * The one thing to know: after every call, the free capacity can serve no waiter. A new request therefore never overtakes a
 * waiter that could have had its slot, and a freed slot goes to exactly the first waiter that can use it.
 *
 * Rules: behaviour "The pool", spec "Limits". A call costs O(log n) in accounts and waiters; `configure` costs O(n log n),
 * and a call that refuses waiters costs O(log n) for each of them.
 */
import { type Cooperative, eachCooperatively } from "../domain/stream/cooperative.ts"
import { Heap, type HeapEntry, heapEntry } from "./heap.ts"
import { type Queued, WaitQueue } from "./waitQueue.ts"

/** How many requests may run and wait at once. */
export interface Limits {
  /** Slots of each account. */
  readonly perAccount: number
  /** Slots in use at once, those of direct callers (with a token of their own) included. */
  readonly global: number
  /** Requests waiting at once; direct callers take at most half of the places. */
  readonly queue: number
  /** Slots that direct callers hold at once. The operator has not vouched for them. */
  readonly direct: number
}

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

/** Called once when a waiter is granted (`undefined`) or refused, never after `close`. It may call back. */
type Notify = (refusal: Refusal | undefined) => void

/** A request in the queue. */
interface QueuedRequest<out A> {
  /** When it began to wait, in milliseconds. */
  readonly since: number
  /** The `about` of its `request` call. */
  readonly about: string
  /** The account that it is pinned to. */
  readonly pinned: Slot<A> | undefined
}

/** Receives changes as they happen. The methods must be cheap, must not throw and must not call back. */
export interface PoolChanges<in A> {
  /** The slots in use, the state or `enabled` of an account changed; `undefined` for a change of other numbers. */
  readonly slot: (slot: Slot<A> | undefined) => void
  /** The queue changed. */
  readonly queue: () => void
}

/** One request's claim, from `request` to `close`. */
export interface Waiter<out A> {
  readonly state: "waiting" | "granted" | "closed"
  /** The granted account; `undefined` while waiting, and for `Direct`. */
  readonly slot: Slot<A> | undefined
}

const full: Refusal = { _tag: "Full" }
const unavailable: Refusal = { _tag: "Unavailable" }
const unknown: Refusal = { _tag: "Unknown" }
const late: Refusal = { _tag: "Late" }

/** The `lastGiven` of accounts that were never granted starts here, in the order of arrival: before every granted one. */
const neverGiven = -(2 ** 40)
/** Added to the rotation key of an account that is being cleaned up, which puts it behind all others. */
const behindAll = 2 ** 50

/** What the waiters of one queue wait for. */
type Purpose<A> =
  | { readonly _tag: "Any"; readonly avoid: ReadonlySet<string>; readonly id: string }
  | { readonly _tag: "Pinned"; readonly slot: SlotNode<A> }
  | { readonly _tag: "Direct" }

type Waiters<A> = WaitQueue<WaiterNode<A>, Purpose<A>>

class SlotNode<A> implements Slot<A> {
  readonly key: string
  account: A
  inUse = 0
  state: SlotState = "ready"
  until = 0
  member = true
  enabled = true
  cleaning = false
  /** The number of its last grant. */
  lastGiven: number
  /** The waiters that are pinned to this account; made by the first of them. */
  queue: Waiters<A> | undefined = undefined
  /** Place among the accounts with spare capacity, by `lastGiven`. */
  readonly rotation: HeapEntry<SlotNode<A>> = heapEntry(this)
  /** Place among the cooling accounts, or among those that are out, by `until`. */
  readonly recovery: HeapEntry<SlotNode<A>> = heapEntry(this)

  constructor(key: string, account: A, lastGiven: number) {
    this.key = key
    this.account = account
    this.lastGiven = lastGiven
  }

  get available(): boolean {
    return this.rotation.position !== -1
  }

  ownQueue(): Waiters<A> {
    this.queue ??= new WaitQueue<WaiterNode<A>, Purpose<A>>({ _tag: "Pinned", slot: this })
    return this.queue
  }
}

class WaiterNode<A> implements Waiter<A>, Queued<WaiterNode<A>> {
  state: "waiting" | "granted" | "closed" = "waiting"
  slot: SlotNode<A> | undefined = undefined
  /** The queue that it stands in; `undefined` if it never waited or has left. */
  queue: Waiters<A> | undefined = undefined
  previous: WaiterNode<A> | undefined = undefined
  next: WaiterNode<A> | undefined = undefined
  number = 0
  since = 0
  deadline = 0
  about = ""
  notify: Notify | undefined = undefined
}

const noAvoid: ReadonlySet<string> = new Set()

/** The pool of one gateway; `A` is the caller's own account type. */
export class PoolState<A> {
  /** Receives the changes, if set. */
  changes: PoolChanges<A> | undefined = undefined
  #limits: Limits
  readonly #members = new Map<string, SlotNode<A>>()
  /** Accounts that have left the configuration and still have leases. */
  readonly #draining = new Map<string, SlotNode<A>>()
  /** Accounts in rotation with spare capacity. */
  readonly #spare = new Heap<SlotNode<A>>()
  readonly #cooling = new Heap<SlotNode<A>>()
  readonly #out = new Heap<SlotNode<A>>()
  /** Queues with waiters. The queue of one account is here only while that account has spare capacity. */
  readonly #queues = new Heap<Waiters<A>>()
  readonly #direct: Waiters<A> = new WaitQueue<WaiterNode<A>, Purpose<A>>({ _tag: "Direct" })
  readonly #any: Waiters<A> = new WaitQueue<WaiterNode<A>, Purpose<A>>({ _tag: "Any", avoid: noAvoid, id: "" })
  /** Queues of requests that avoid accounts, by those accounts; kept only while they have waiters. */
  readonly #avoiding = new Map<string, Waiters<A>>()
  /** Every waiter, in the order of arrival. */
  readonly #waiters = new Set<WaiterNode<A>>()
  /** Waiters that are granted or refused and not yet notified. */
  readonly #outcomes: Array<readonly [WaiterNode<A>, Refusal | undefined]> = []
  #notifying = false
  #inUse = 0
  /** Slots that `Direct` requests hold, and `Direct` requests that wait. */
  #directInUse = 0
  #directWaiting = 0
  #disabled = 0
  #given = 0
  #arrived = 0
  #numbered = 0

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Slots in use, with those of direct callers and of draining accounts. */
  get inUse(): number {
    return this.#inUse
  }
  get waiting(): number {
    return this.#waiters.size
  }
  get limits(): Limits {
    return this.#limits
  }
  /** Configured accounts that are enabled. */
  get size(): number {
    return this.#members.size - this.#disabled
  }
  /** Configured accounts that are disabled. */
  get disabled(): number {
    return this.#disabled
  }
  /** Accounts in rotation with spare capacity. */
  get available(): number {
    return this.#spare.size
  }
  /** Enabled accounts that are cooling. */
  get cooling(): number {
    return this.#cooling.size
  }
  /** Enabled accounts that are out. */
  get out(): number {
    return this.#out.size
  }
  /** The earliest time at which `recover` has work; infinity without any. */
  get nextRecovery(): number {
    return Math.min(
      this.#cooling.peek()?.key ?? Number.POSITIVE_INFINITY,
      this.#out.peek()?.key ?? Number.POSITIVE_INFINITY
    )
  }

  /** A configured account. */
  get(key: string): Slot<A> | undefined {
    return this.#members.get(key)
  }

  /** The configured accounts, in the order in which they came. */
  slots(): IterableIterator<Slot<A>> {
    return this.#members.values()
  }

  /** The waiting requests, the oldest first. */
  *queued(): IterableIterator<QueuedRequest<A>> {
    for (const { about, queue, since } of this.#waiters) {
      yield { since, about, pinned: queue?.purpose._tag === "Pinned" ? queue.purpose.slot : undefined }
    }
  }

  get draining(): ReadonlyMap<string, Slot<A>> {
    return this.#draining
  }

  /**
   * Asks for a slot: returns a granted waiter, a waiter that `notify` reports on, or a refusal. `now` and `patience` are in
   * milliseconds; a request that no account can serve before `now + patience` is refused at once. A caller that stops
   * waiting calls `close`. `about` describes the request in the queue status.
   */
  request(request: LeaseRequest, now: number, patience: number, notify: Notify, about = ""): Waiter<A> | Refusal {
    const queue = this.#queueOf(request)
    if (queue === undefined) return unknown
    const deadline = now + patience
    const refusal = this.#refusalFor(queue.purpose, deadline)
    if (refusal !== undefined) return refusal
    const waiter = new WaiterNode<A>()
    const direct = queue.purpose._tag === "Direct"
    if (this.#inUse < this.#limits.global) {
      const slot = this.#pick(queue.purpose)
      if (slot !== undefined || (direct && this.#directAllowed)) {
        this.#give(waiter, slot)
        return waiter
      }
    }
    const noPlace = this.#waiters.size >= this.#limits.queue ||
      (direct && this.#directWaiting >= Math.floor(this.#limits.queue / 2))
    if (noPlace) return this.#refusalFor(queue.purpose, now) ?? full
    waiter.number = ++this.#numbered
    waiter.since = now
    waiter.deadline = deadline
    waiter.about = about
    waiter.notify = notify
    this.#join(queue, waiter)
    return waiter
  }

  /** Gives the slot back, or leaves the queue. Only the first call has an effect. */
  close(waiter: Waiter<A>): void {
    const node = waiter as WaiterNode<A>
    const state = node.state
    node.state = "closed"
    node.notify = undefined
    if (state === "waiting") this.#leave(node)
    if (state !== "granted") return
    this.#inUse--
    const slot = node.slot
    this.changes?.slot(slot)
    if (slot === undefined) {
      this.#directInUse--
      this.#placeQueue(this.#direct)
    } else {
      slot.inUse--
      if (slot.member) this.#place(slot)
      else if (slot.inUse === 0) this.#draining.delete(slot.key)
    }
    this.#serve()
  }

  /** The refusal of a waiter whose time in the queue is over: `Late`, or what keeps its accounts out of rotation. */
  late(waiter: Waiter<A>): Refusal {
    const queue = (waiter as WaiterNode<A>).queue
    return (queue === undefined ? undefined : this.#refusalFor(queue.purpose, Number.NEGATIVE_INFINITY)) ?? late
  }

  /** Takes an account out of rotation: until `until` (`cooling`), or to be tried again at `until` (`out`). */
  suspend(slot: Slot<A>, state: "cooling" | "out", until: number): void {
    const node = slot as SlotNode<A>
    if (!node.member) return
    this.#setState(node, state, until)
    if (node.queue !== undefined) this.#refuse(node.queue)
    this.#refuseShared()
    this.#serve()
  }

  /** Puts an account back into rotation. */
  restore(slot: Slot<A>): void {
    const node = slot as SlotNode<A>
    if (!node.member || node.state === "ready") return
    this.#setState(node, "ready", 0)
    this.#serve()
  }

  /**
   * Puts cooling accounts whose time is over back into rotation, and returns the `out` accounts that are due for a try.
   * Those stay out, and are not due again, until `suspend` or `restore`.
   */
  recover(now: number): ReadonlyArray<Slot<A>> {
    for (let first = this.#cooling.peek(); first !== undefined && first.key <= now; first = this.#cooling.peek()) {
      this.#setState(first.value, "ready", 0)
    }
    const due: Array<Slot<A>> = []
    for (let first = this.#out.peek(); first !== undefined && first.key <= now; first = this.#out.peek()) {
      due.push(first.value)
      this.#setState(first.value, "out", Number.POSITIVE_INFINITY)
    }
    this.#serve()
    return due
  }

  /** Marks an account as being cleaned up: it is granted only while no other account has spare capacity. */
  setCleaning(slot: Slot<A>, cleaning: boolean): void {
    const node = slot as SlotNode<A>
    node.cleaning = cleaning
    this.#place(node)
  }

  /**
   * Applies new accounts, by key, and new limits. Running leases go on counting. An account that left drains, and keeps its
   * slots if it returns meanwhile. Waiters keep their places, except those pinned to an account that left or is among the
   * `disabled`, which are refused. Runs in slices; between two of them the pool has accounts of both configurations.
   */
  *configure(
    accounts: ReadonlyMap<string, A>,
    limits: Limits,
    disabled: ReadonlySet<string> = new Set()
  ): Cooperative<void> {
    this.#limits = limits
    this.#placeQueue(this.#direct)
    // New accounts are added before old ones go, so that the pool is never empty in between.
    yield* eachCooperatively(accounts, ([key, account]) => {
      const slot = this.#members.get(key) ?? this.#add(key, account)
      slot.account = account
      this.#setEnabled(slot, !disabled.has(key))
    })
    yield* eachCooperatively(this.#members.values(), (slot) => {
      if (!accounts.has(slot.key)) this.#remove(slot)
    })
    this.changes?.slot(undefined)
    this.#refuseShared()
    this.#serve()
  }

  #add(key: string, account: A): SlotNode<A> {
    const slot = this.#draining.get(key) ?? new SlotNode(key, account, neverGiven + this.#arrived++)
    slot.member = true
    this.#draining.delete(key)
    this.#members.set(key, slot)
    return slot
  }

  #remove(slot: SlotNode<A>): void {
    this.#setEnabled(slot, true)
    this.#members.delete(slot.key)
    slot.member = false
    this.#setState(slot, "ready", 0)
    if (slot.inUse > 0) this.#draining.set(slot.key, slot)
    if (slot.queue !== undefined) this.#refuse(slot.queue)
  }

  #setState(slot: SlotNode<A>, state: SlotState, until: number): void {
    this.#leaveRecovery(slot)
    slot.state = state
    slot.until = until
    this.changes?.slot(slot)
    this.#joinRecovery(slot)
    this.#place(slot)
  }

  #leaveRecovery(slot: SlotNode<A>): void {
    if (slot.state === "cooling") this.#cooling.remove(slot.recovery)
    if (slot.state === "out") this.#out.remove(slot.recovery)
  }

  /** A disabled account keeps its state without being tried: its recovery waits until it is enabled. */
  #joinRecovery(slot: SlotNode<A>): void {
    if (!slot.enabled) return
    if (slot.state === "cooling") this.#cooling.put(slot.recovery, slot.until)
    if (slot.state === "out") this.#out.put(slot.recovery, slot.until)
  }

  #setEnabled(slot: SlotNode<A>, enabled: boolean): void {
    if (slot.enabled !== enabled) {
      this.#disabled += enabled ? -1 : 1
      this.#leaveRecovery(slot)
      slot.enabled = enabled
      this.changes?.slot(slot)
      this.#joinRecovery(slot)
      if (!enabled && slot.queue !== undefined) this.#refuse(slot.queue)
    }
    this.#place(slot)
  }

  /** Puts an account and its queue where the account's state says. */
  #place(slot: SlotNode<A>): void {
    if (slot.member && slot.enabled && slot.state === "ready" && slot.inUse < this.#limits.perAccount) {
      this.#spare.put(slot.rotation, slot.cleaning ? slot.lastGiven + behindAll : slot.lastGiven)
    } else {
      this.#spare.remove(slot.rotation)
    }
    if (slot.queue?.head !== undefined) this.#placeQueue(slot.queue)
  }

  #placeQueue(queue: Waiters<A>): void {
    const head = queue.head
    const { purpose } = queue
    if (
      head === undefined || (purpose._tag === "Pinned" && !purpose.slot.available) ||
      (purpose._tag === "Direct" && !this.#directAllowed)
    ) {
      this.#queues.remove(queue.entry)
    } else {
      this.#queues.put(queue.entry, head.number)
    }
  }

  /** Whether direct callers may hold another slot. */
  get #directAllowed(): boolean {
    return this.#directInUse < this.#limits.direct
  }

  #queueOf(request: LeaseRequest): Waiters<A> | undefined {
    if (request._tag === "Direct") return this.#direct
    if (request._tag === "Pinned") return this.#members.get(request.key)?.ownQueue()
    if (request.avoid.size === 0) return this.#any
    const id = [...request.avoid].sort().join("\n")
    return this.#avoiding.get(id) ??
      new WaitQueue<WaiterNode<A>, Purpose<A>>({ _tag: "Any", avoid: new Set(request.avoid), id })
  }

  #join(queue: Waiters<A>, waiter: WaiterNode<A>): void {
    queue.join(waiter)
    waiter.queue = queue
    this.#waiters.add(waiter)
    this.changes?.queue()
    if (queue === this.#direct) this.#directWaiting++
    if (queue.purpose._tag === "Any" && queue !== this.#any) this.#avoiding.set(queue.purpose.id, queue)
    this.#placeQueue(queue)
  }

  #leave(waiter: WaiterNode<A>): void {
    const queue = waiter.queue!
    queue.leave(waiter)
    waiter.queue = undefined
    this.#waiters.delete(waiter)
    this.changes?.queue()
    if (queue === this.#direct) this.#directWaiting--
    if (queue.purpose._tag === "Any" && queue.head === undefined) this.#avoiding.delete(queue.purpose.id)
    this.#placeQueue(queue)
  }

  #give(waiter: WaiterNode<A>, slot: SlotNode<A> | undefined): void {
    waiter.state = "granted"
    waiter.slot = slot
    this.#inUse++
    this.changes?.slot(slot)
    if (slot === undefined) {
      this.#directInUse++
      this.#placeQueue(this.#direct)
      return
    }
    slot.inUse++
    slot.lastGiven = ++this.#given
    this.#place(slot)
  }

  /** The account that the next request for a purpose gets. */
  #pick(purpose: Purpose<A>): SlotNode<A> | undefined {
    if (purpose._tag === "Direct") return undefined
    if (purpose._tag === "Pinned") return purpose.slot.available ? purpose.slot : undefined
    const { avoid } = purpose
    if (avoid.size === 0) return this.#spare.peek()?.value
    const best = this.#spare.first((slot) => !avoid.has(slot.key))
    if (best !== undefined) return best.value
    return this.#othersInRotation(avoid) ? undefined : this.#spare.peek()?.value
  }

  get #inRotation(): number {
    return this.size - this.#cooling.size - this.#out.size
  }

  #othersInRotation(avoid: ReadonlySet<string>): boolean {
    let avoided = 0
    for (const key of avoid) {
      const slot = this.#members.get(key)
      if (slot?.enabled === true && slot.state === "ready") avoided++
    }
    return this.#inRotation > avoided
  }

  /** Why no account for a purpose is in rotation or returns before the deadline; `undefined` if one does. */
  #refusalFor(purpose: Purpose<A>, deadline: number): Refusal | undefined {
    if (purpose._tag === "Direct") return undefined
    if (purpose._tag === "Pinned") {
      const { enabled, member, state, until } = purpose.slot
      if (!member) return unknown
      if (!enabled) return unavailable
      if (state === "ready") return undefined
      if (state === "out") return unavailable
      return until > deadline ? { _tag: "Cooling", until } : undefined
    }
    if (this.#inRotation > 0) return undefined
    const until = this.#cooling.peek()?.key
    if (until === undefined) return unavailable
    return until > deadline ? { _tag: "Cooling", until } : undefined
  }

  /** Refuses the first waiters of a queue as long as no account can serve them in time. */
  #refuse(queue: Waiters<A>): void {
    for (let head = queue.head; head !== undefined; head = queue.head) {
      const refusal = this.#refusalFor(queue.purpose, head.deadline)
      if (refusal === undefined) return
      this.#leave(head)
      head.state = "closed"
      this.#outcomes.push([head, refusal])
    }
  }

  #refuseShared(): void {
    if (this.#inRotation > 0) return
    this.#refuse(this.#any)
    for (const queue of this.#avoiding.values()) this.#refuse(queue)
  }

  readonly #servable = (queue: Waiters<A>): boolean =>
    queue.purpose._tag !== "Any" || this.#pick(queue.purpose) !== undefined

  /** The queue whose first waiter is the oldest that can be served now. */
  #nextQueue(): Waiters<A> | undefined {
    if (this.#spare.size > 0) return this.#queues.first(this.#servable)?.value
    return this.#direct.head === undefined || !this.#directAllowed ? undefined : this.#direct
  }

  /** Gives the free capacity to waiters in order, then notifies all that were granted or refused. */
  #serve(): void {
    while (this.#waiters.size > 0 && this.#inUse < this.#limits.global) {
      const queue = this.#nextQueue()
      const head = queue?.head
      if (queue === undefined || head === undefined) break
      const slot = this.#pick(queue.purpose)
      this.#leave(head)
      this.#give(head, slot)
      this.#outcomes.push([head, undefined])
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
