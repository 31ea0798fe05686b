/**
 * The synchronous core of the pool: slots, rotation, limits, the queue, and the state of each account. It uses no Effects,
 * no clock and no randomness: times are arguments, so that tests compare generated interleavings with a plain model.
 *
 * The one thing to know: after every call, the free capacity can serve no waiter. A new request therefore never overtakes a
 * waiter that could have had its slot, and a freed slot goes to exactly the first waiter that can use it. `poolQueue.ts` keeps this
 * including for several pools that share their requests (`Pools.ts`).
 *
 * Rules: behaviour "The pool", spec "Limits". A call costs O(log n) in accounts and waiters; `configure` costs O(n log n),
 * and a call that refuses waiters costs O(log n) for each of them.
 */
import { triedAfter } from "../domain/statedTime.ts"
import { type Cooperative, eachCooperatively } from "../domain/stream/cooperative.ts"
import { AccountOrder, type PoolChoice, type Ranked } from "./choice.ts"
import { Heap, type HeapEntry, heapEntry } from "./heap.ts"
import {
  type LeaseRequest,
  type Needs,
  type Notify,
  type Place,
  PoolQueue,
  type QueuedPool,
  type Refusal,
  type Skipped,
  type Slot,
  type SlotState,
  unavailable,
  unknownAccount,
  type Waiter
} from "./poolQueue.ts"
import { WaitQueue } from "./waitQueue.ts"

export type { LeaseRequest, Needs, Refusal, Slot, SlotState, Waiter } from "./poolQueue.ts"

/** How many requests may run and wait concurrently. */
export interface Limits {
  /** Slots of each account. */
  readonly perAccount: number
  /** Slots in use concurrently, those of direct callers (with a token of their own) included. */
  readonly global: number
  /** Requests waiting concurrently; direct callers take at most half of the places. */
  readonly queue: number
  /** Slots that direct callers hold concurrently. The operator has not vouched for them. */
  readonly direct: number
}

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

/** The `lastGiven` of accounts that were never granted starts here, in the order of arrival: before every granted one. */
const neverGiven = -(2 ** 40)
/** Added to the score of an account that is being cleaned up, which puts it behind all others. */
const behindAll = 2 ** 50

/** What the waiters of one queue wait for. */
type Purpose<A> = AccountPurpose<A> | { readonly _tag: "Direct"; readonly id: "" }

/** An account that suits the waiters: any one but those to avoid, or the one that they are pinned to. */
type AccountPurpose<A> =
  & {
    /** Names the purpose; empty for any account. */
    readonly id: string
    readonly needs: Needs<A> | undefined
  }
  & ({ readonly _tag: "Any"; readonly avoid: ReadonlySet<string> } | {
    readonly _tag: "Pinned"
    readonly slot: SlotNode<A>
  })

type Waiters<A> = WaitQueue<Place<A>, Purpose<A>>

class SlotNode<A> implements Ranked, Slot<A> {
  readonly key: string
  account: A
  inUse = 0
  /** What is known of its health, and the state that follows of that and its budgets: at a budget, it cools until the window ends. */
  health: SlotState = "ready"
  healthUntil = 0
  stated = 0
  state: SlotState = "ready"
  until = 0
  spent = 0
  member = true
  enabled = true
  cleaning = false
  /** The number of its last grant. */
  lastGiven: number
  order = 0
  priority = 0
  weight = 1
  start = 0
  reset: number | undefined = undefined
  /** The queues of waiters that are pinned to this account; made by the first of them. */
  queues: Set<Waiters<A>> | undefined = undefined
  /** Place among the accounts with spare capacity, by their score (`choice.ts`). */
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
}

/** When an account in rotation suits a purpose: 0 for now, and infinity for never. */
const suitsAt = <A>({ needs }: AccountPurpose<A>, { account }: SlotNode<A>): number =>
  needs === undefined ? 0 : needs.suitsAt(account)

const noAvoid: ReadonlySet<string> = new Set()

/** The pool of one gateway; `A` is the caller's own account type. */
export class PoolState<A> implements QueuedPool<A> {
  readonly name: string
  /** Receives the changes, if set. */
  changes: PoolChanges<A> | undefined = undefined
  #limits: Limits
  readonly #order = new AccountOrder()
  readonly #members = new Map<string, SlotNode<A>>()
  /** Accounts that have left the configuration and still have leases. */
  readonly #draining = new Map<string, SlotNode<A>>()
  /** Accounts in rotation with spare capacity. */
  readonly #spare = new Heap<SlotNode<A>>()
  readonly #cooling = new Heap<SlotNode<A>>()
  readonly #out = new Heap<SlotNode<A>>()
  /** Queues with waiters. The queue of one account is here only while that account has spare capacity. */
  readonly #queues = new Heap<Waiters<A>>()
  /** Queues with waiters whose needs no account with spare capacity meets, by the time at which one may. */
  readonly #blocked = new Heap<Waiters<A>>()
  readonly #direct: Waiters<A> = new WaitQueue<Place<A>, Purpose<A>>({ _tag: "Direct", id: "" })
  readonly #any: Waiters<A> = new WaitQueue<Place<A>, Purpose<A>>({
    _tag: "Any",
    avoid: noAvoid,
    id: "",
    needs: undefined
  })
  /** The queues of other purposes, by their ids; kept only while they have waiters. */
  readonly #others = new Map<string, Waiters<A>>()
  readonly #queue: PoolQueue<A>
  readonly #alone: ReadonlyArray<PoolState<A>> = [this]
  /** Places of waiters that wait elsewhere while this pool is skipped. */
  readonly #parked = new Set<Place<A>>()
  /** Accounts that one request has begun to try, whose waiters are not yet told. */
  #tried: Array<SlotNode<A>> = []
  skipped: Skipped = "no"
  readonly holding: QueuedPool<A>["holding"] = new Set()
  #open = true
  #waiting = 0
  #inUse = 0
  /** Slots that `Direct` requests hold, and `Direct` requests that wait. */
  #directInUse = 0
  #directWaiting = 0
  /** When the window of the pool's own used-up budget ends; 0 while there is something left. */
  #spent = 0
  #disabled = 0
  #given = 0
  #arrived = 0

  /** `queue` is shared by pools whose slots the same requests may use, each with its name. */
  constructor(limits: Limits, queue: PoolQueue<A> = new PoolQueue(), name = "") {
    this.#limits = limits
    this.name = name
    this.#queue = queue
    queue.pools.set(name, this)
  }

  /** Slots in use, with those of direct callers and of draining accounts. */
  get inUse(): number {
    return this.#inUse
  }
  get waiting(): number {
    return this.#waiting
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
  /** When the window of the pool's used-up budget ends, in milliseconds; 0 while it has something left. */
  get spent(): number {
    return this.#spent
  }
  /** The earliest time at which `recover` has work; infinity without any. */
  get nextRecovery(): number {
    return Math.min(
      this.#spent === 0 ? Number.POSITIVE_INFINITY : this.#spent,
      this.#cooling.peek()?.key ?? Number.POSITIVE_INFINITY,
      this.#out.peek()?.key ?? Number.POSITIVE_INFINITY,
      this.#blocked.peek()?.key ?? Number.POSITIVE_INFINITY
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

  /**
   * The key of the free account with the lowest rank; an account without a rank does not count. Of equal ones the one that was used least
   * recently. Takes a look at each account.
   */
  bestFree(rankOf: (slot: Slot<A>) => number | undefined): string | undefined {
    let best: SlotNode<A> | undefined
    let least = Number.POSITIVE_INFINITY
    for (const slot of this.#members.values()) {
      const rank = slot.available ? rankOf(slot) : undefined
      if (rank === undefined || rank > least || (rank === least && slot.lastGiven > best!.lastGiven)) continue
      best = slot
      least = rank
    }
    return best?.key
  }

  /** The waiting requests, the oldest first. */
  *queued(): IterableIterator<QueuedRequest<A>> {
    for (const waiter of this.#queue.waiters) {
      for (const { pool, queue } of waiter.places()) {
        if (pool !== this) continue
        yield { since: waiter.since, about: waiter.about, pinned: this.pinnedTo(queue as Waiters<A>) }
      }
    }
  }

  get draining(): ReadonlyMap<string, Slot<A>> {
    return this.#draining
  }

  /**
   * Asks for a slot: returns a granted waiter, a waiter that `notify` reports on, or a refusal. `now` and `patience` are in
   * milliseconds; a request that no account can serve before `now + patience` is refused immediately. A caller that stops
   * waiting calls `close`. `about` describes the request in the queue status.
   */
  request(request: LeaseRequest, now: number, patience: number, notify: Notify, about = ""): Waiter<A> | Refusal {
    return this.#queue.request(this.#alone, request, now, patience, notify, about)
  }

  /** Gives the slot back, or leaves the queue. Only the first call has an effect. */
  close(waiter: Waiter<A>): void {
    this.#queue.close(waiter)
  }

  /** The refusal of a waiter whose time in the queue is over: `Late`, or what keeps its accounts out of rotation. */
  late(waiter: Waiter<A>): Refusal {
    return this.#queue.late(waiter)
  }

  /**
   * Takes an account out of rotation: until `until` (`cooling`), or to be tried again at `until` (`out`). Of a cooling account whose upstream
   * wants no request until `stated`, one request gets a slot at `until`, and one every `triedAfter` from then on, unless it is restored.
   */
  suspend(slot: Slot<A>, state: "cooling" | "out", until: number, stated: number = until): void {
    const node = slot as SlotNode<A>
    if (!node.member) return
    node.stated = state === "cooling" && stated > until ? stated : 0
    this.#setState(node, state, until)
    this.#refusePinned(node)
    this.#refuseShared()
    this.#queue.serve()
  }

  /** Puts an account back into rotation. */
  restore(slot: Slot<A>): void {
    const node = slot as SlotNode<A>
    if (!node.member) return
    node.stated = 0
    if (node.health === "ready") return
    this.#setState(node, "ready", 0)
    this.#queue.serve()
  }

  /** Says until when an account is out because a budget of it is used up; 0 once there is something left. */
  spend(slot: Slot<A>, until: number): void {
    const node = slot as SlotNode<A>
    if (!node.member || node.spent === until) return
    node.spent = until
    this.#setState(node, node.health, node.healthUntil)
    this.#refusePinned(node)
    this.#refuseShared()
    this.#queue.serve()
  }

  /** Says that an account, or each one, may suit other waiters than before. Looks at every waiter that nothing suits. */
  reconsider(slot: Slot<A> | undefined): void {
    this.#unblock(slot as SlotNode<A> | undefined)
    this.#queue.serve()
  }

  /** Says until when the pool serves no managed request because its own budget is used up; 0 once there is something left. */
  spendAll(until: number): void {
    if (this.#spent === until) return
    this.#spent = until
    for (const slot of this.#members.values()) this.#refusePinned(slot)
    this.#refuseShared()
    this.#queue.serve()
  }

  /**
   * Puts cooling accounts whose time is over back into rotation, and returns the `out` accounts that are due for a try.
   * Those stay out, and are not due again, until `suspend` or `restore`.
   */
  recover(now: number): ReadonlyArray<Slot<A>> {
    this.#queue.now = now
    if (this.#spent <= now) this.#spent = 0
    for (let first = this.#cooling.peek(); first !== undefined && first.key <= now; first = this.#cooling.peek()) {
      first.value.spent = 0
      this.#setState(first.value, "ready", 0)
    }
    for (let first = this.#blocked.peek(); first !== undefined && first.key <= now; first = this.#blocked.peek()) {
      this.#release(first.value)
    }
    const due: Array<Slot<A>> = []
    for (let first = this.#out.peek(); first !== undefined && first.key <= now; first = this.#out.peek()) {
      due.push(first.value)
      this.#setState(first.value, "out", Number.POSITIVE_INFINITY)
    }
    this.#queue.serve()
    return due
  }

  /** Says when the quota of an account resets, in Unix milliseconds; `undefined` if that is unknown. */
  setReset(slot: Slot<A>, reset: number | undefined): void {
    const node = slot as SlotNode<A>
    if (node.reset === reset) return
    node.reset = reset
    if (this.#order.choose === "spend_soonest_reset" && node.member) this.#place(node)
  }

  /** Marks an account as being cleaned up: it is granted only while no other account has spare capacity. */
  setCleaning(slot: Slot<A>, cleaning: boolean): void {
    const node = slot as SlotNode<A>
    node.cleaning = cleaning
    this.#place(node)
  }

  /** Applies what bounds the next grants. `apply` follows, which applies the rest. */
  prepare(limits: Limits, open: boolean): void {
    this.#limits = limits
    this.#open = open
    this.#placeQueue(this.#direct)
  }

  /**
   * Applies new accounts, by key, and new limits. Running leases go on counting. An account that left drains, and keeps its
   * slots if it returns meanwhile. Waiters keep their places, except those pinned to an account that left or is among the
   * `disabled`, which are refused. Runs in slices; between two of them the pool has accounts of both configurations.
   */
  *configure(
    accounts: ReadonlyMap<string, A>,
    limits: Limits,
    disabled: ReadonlySet<string> = new Set(),
    choice?: PoolChoice<A>
  ): Cooperative<void> {
    yield* this.apply(accounts, limits, disabled, true, choice)
    this.#queue.serve()
  }

  /** `configure` without serving waiters. A pool that is not `open` grants no slot, and its waiters give up their places. */
  *apply(
    accounts: ReadonlyMap<string, A>,
    limits: Limits,
    disabled: ReadonlySet<string>,
    open: boolean,
    choice?: PoolChoice<A>
  ): Cooperative<void> {
    this.prepare(limits, open)
    const choose = choice?.choose ?? "rotate"
    const isOrdered = choose !== "rotate" || this.#order.choose !== "rotate"
    let order = 0
    let sum = 0
    // New accounts are added before old ones go, so that the pool is never empty in between.
    yield* eachCooperatively(accounts, ([key, account]) => {
      const slot = this.#members.get(key) ?? this.#add(key, account)
      slot.account = account
      slot.order = ++order
      Object.assign(slot, choice?.of(account))
      this.#setEnabled(slot, !disabled.has(key))
      if (slot.enabled) sum += slot.weight
    })
    yield* eachCooperatively(this.#members.values(), (slot) => {
      if (!accounts.has(slot.key)) this.#remove(slot)
    })
    if (isOrdered) {
      this.#order.begin(choose, sum)
      yield* eachCooperatively(this.#members.values(), (slot) => {
        slot.start = this.#order.first(slot)
        this.#place(slot)
      })
    }
    if (!open) {
      this.#refuse(this.#direct)
      yield* eachCooperatively(this.#members.values(), (slot) => this.#refusePinned(slot))
    }
    this.#unblock(undefined)
    this.changes?.slot(undefined)
    this.#refuseShared()
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
    slot.spent = 0
    slot.stated = 0
    this.#setState(slot, "ready", 0)
    if (slot.inUse > 0) this.#draining.set(slot.key, slot)
    this.#refusePinned(slot)
  }

  #setState(slot: SlotNode<A>, health: SlotState, until: number): void {
    this.#leaveRecovery(slot)
    const { spent } = slot
    const isSpent = spent > 0 && health !== "out"
    slot.health = health
    slot.healthUntil = until
    slot.state = isSpent ? "cooling" : health
    slot.until = isSpent ? Math.max(spent, until) : until
    if (slot.state === "ready") this.#order.enters(slot)
    this.changes?.slot(slot)
    this.#joinRecovery(slot)
    this.#place(slot)
    // Without it others may be in rotation no more, so that an account which is avoided serves.
    this.#unblock(undefined)
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
      if (!enabled) this.#refusePinned(slot)
      this.#unblock(undefined)
    }
    this.#place(slot)
  }

  /** Puts an account and its queue where the account's state says. */
  #place(slot: SlotNode<A>): void {
    if (slot.member && slot.enabled && slot.state === "ready" && slot.inUse < this.#limits.perAccount) {
      const score = this.#order.score(slot)
      const wasAvailable = slot.available
      this.#spare.put(slot.rotation, slot.cleaning ? score + behindAll : score)
      if (!wasAvailable) this.#unblock(slot)
    } else {
      this.#spare.remove(slot.rotation)
    }
    if (slot.queues === undefined) return
    for (const queue of slot.queues) this.#placeQueue(queue)
  }

  /** Lets the waiters be looked at again that nothing has suited: all, or those that an account suits now; others, when it suits them. */
  #unblock(slot: SlotNode<A> | undefined): void {
    if (this.#blocked.size === 0) return
    for (const queue of this.#blocked.values()) {
      const { purpose } = queue
      if (slot !== undefined && purpose._tag === "Pinned" && purpose.slot !== slot) continue
      // An account that is avoided serves once no other one does.
      const isChanged = slot === undefined || (purpose._tag === "Any" && purpose.avoid.size > 0)
      const at = isChanged || purpose._tag === "Direct" ? 0 : suitsAt(purpose, slot)
      if (at === 0) this.#release(queue)
      else if (at < queue.entry.key) {
        this.#blocked.put(queue.entry, at)
        this.#queue.isDue = true
      }
    }
  }

  #release(queue: Waiters<A>): void {
    this.#blocked.remove(queue.entry)
    queue.isBlocked = false
    this.#placeQueue(queue)
  }

  /** Sets the waiters of a purpose aside, until an account may suit it that does not now. Looks at each account. */
  #block(queue: Waiters<A>): void {
    const { purpose } = queue
    if (purpose._tag === "Direct") return
    let first = Number.POSITIVE_INFINITY
    for (const slot of purpose._tag === "Pinned" ? [purpose.slot] : this.#members.values()) {
      const at = suitsAt(purpose, slot)
      if (at > 0 && at < first) first = at
    }
    this.#queues.remove(queue.entry)
    queue.isBlocked = true
    this.#blocked.put(queue.entry, first)
    this.#queue.isDue = true
  }

  #placeQueue(queue: Waiters<A>): void {
    const head = queue.head
    const { purpose } = queue
    if (queue.isBlocked) {
      if (head === undefined) this.#release(queue)
      return
    }
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

  queueOf(request: LeaseRequest, needs: Needs<A> | undefined): Waiters<A> | undefined {
    if (request._tag === "Direct") return this.#direct
    const slot = request._tag === "Pinned" ? this.#members.get(request.key) : undefined
    if (request._tag === "Pinned") {
      if (slot === undefined) return undefined
      const id = `pinned\n${slot.key}\n${needs?.id ?? ""}`
      return this.#others.get(id) ?? new WaitQueue<Place<A>, Purpose<A>>({ _tag: "Pinned", slot, id, needs })
    }
    const { avoid } = request
    if (avoid.size === 0 && needs === undefined) return this.#any
    const id = `any\n${needs?.id ?? ""}\n${avoid.size === 0 ? "" : [...avoid].sort().join("\n")}`
    return this.#others.get(id) ??
      new WaitQueue<Place<A>, Purpose<A>>({ _tag: "Any", avoid: new Set(avoid), id, needs })
  }

  hasPlace(queue: Waiters<A>): boolean {
    if (this.#waiting >= this.#limits.queue) return false
    return queue !== this.#direct || this.#directWaiting < Math.floor(this.#limits.queue / 2)
  }

  join(queue: Waiters<A>, place: Place<A>): void {
    this.#putIn(queue, place)
    this.#waiting++
    this.changes?.queue()
    if (queue === this.#direct) this.#directWaiting++
  }

  leave(place: Place<A>): void {
    const queue = place.queue as Waiters<A>
    if (place.parked) {
      place.parked = false
      this.#parked.delete(place)
    } else this.#takeOut(queue, place)
    place.queue = undefined
    this.#waiting--
    this.changes?.queue()
    if (queue === this.#direct) this.#directWaiting--
  }

  park(place: Place<A>): void {
    this.#takeOut(place.queue as Waiters<A>, place)
    place.parked = true
    this.#parked.add(place)
  }

  unpark(place: Place<A>): void {
    place.parked = false
    this.#parked.delete(place)
    const { purpose } = place.queue as Waiters<A>
    // Its queue may have become empty, and been replaced by another one with the same purpose.
    this.#putIn(this.#others.get(purpose.id) ?? place.queue as Waiters<A>, place)
  }

  #putIn(queue: Waiters<A>, place: Place<A>): void {
    const { purpose } = queue
    queue.join(place)
    place.queue = queue
    if (purpose.id !== "") this.#others.set(purpose.id, queue)
    if (purpose._tag === "Pinned") (purpose.slot.queues ??= new Set()).add(queue)
    this.#placeQueue(queue)
  }

  #takeOut(queue: Waiters<A>, place: Place<A>): void {
    const { purpose } = queue
    queue.leave(place)
    if (queue.head === undefined && purpose.id !== "") {
      this.#others.delete(purpose.id)
      if (purpose._tag === "Pinned") purpose.slot.queues?.delete(queue)
    }
    this.#placeQueue(queue)
  }

  take({ purpose }: Waiters<A>, preferred: string | undefined): Slot<A> | undefined {
    const slot = this.#preferred(purpose, preferred) ?? this.#pick(purpose)
    this.#inUse++
    this.changes?.slot(slot)
    if (slot === undefined) {
      this.#directInUse++
      this.#placeQueue(this.#direct)
      return undefined
    }
    slot.inUse++
    slot.lastGiven = ++this.#given
    this.#order.given(slot)
    this.#place(slot)
    if (slot.stated > 0) this.#try(slot)
    return slot
  }

  /** Lets no other request than the one that was just granted use an account whose upstream wants none yet. */
  #try(slot: SlotNode<A>): void {
    const { now, tried } = this.#queue
    if (slot.stated <= now) {
      slot.stated = 0
      return
    }
    this.#setState(slot, "cooling", Math.min(slot.stated, now + triedAfter))
    this.#tried.push(slot)
    tried.add(this)
  }

  refuseTried(): void {
    for (const slot of this.#tried) this.#refusePinned(slot)
    this.#tried = []
    this.#refuseShared()
  }

  giveBack(given: Slot<A> | undefined): void {
    const slot = given as SlotNode<A> | undefined
    this.#inUse--
    this.changes?.slot(slot)
    if (slot === undefined) {
      this.#directInUse--
      this.#placeQueue(this.#direct)
    } else {
      slot.inUse--
      if (slot.member) this.#place(slot)
      else if (slot.inUse === 0) this.#draining.delete(slot.key)
    }
  }

  canServe(queue: Waiters<A>): boolean {
    if (!this.#open || this.#inUse >= this.#limits.global) return false
    return queue.purpose._tag === "Direct"
      ? this.#directAllowed
      : this.#spent === 0 && this.#pick(queue.purpose) !== undefined
  }

  pinnedTo({ purpose }: Waiters<A>): Slot<A> | undefined {
    return purpose._tag === "Pinned" ? purpose.slot : undefined
  }

  freeShare(): number {
    const all = Math.min(this.#limits.global, this.#inRotation * this.#limits.perAccount)
    return all === 0 ? 0 : (all - this.#inUse) / all
  }

  #preferred(purpose: Purpose<A>, key: string | undefined): SlotNode<A> | undefined {
    if (key === undefined || purpose._tag !== "Any" || purpose.avoid.has(key)) return undefined
    const slot = this.#members.get(key)
    return slot?.available === true && suitsAt(purpose, slot) === 0 ? slot : undefined
  }

  /** The account that the next request for a purpose gets. */
  #pick(purpose: Purpose<A>): SlotNode<A> | undefined {
    if (purpose._tag === "Direct") return undefined
    if (purpose._tag === "Pinned") {
      const { slot } = purpose
      return slot.available && suitsAt(purpose, slot) === 0 ? slot : undefined
    }
    const isPlain = purpose.needs === undefined && purpose.avoid.size === 0
    return isPlain && this.#order.choose !== "weighted" ? this.#spare.peek()?.value : this.#pickSuiting(purpose)
  }

  /** `#pick` where accounts differ by more than their places in the rotation. */
  #pickSuiting(purpose: Extract<Purpose<A>, { readonly _tag: "Any" }>): SlotNode<A> | undefined {
    const { avoid, needs } = purpose
    const order = this.#order
    const isWanted = (slot: SlotNode<A>) => !avoid.has(slot.key) && suitsAt(purpose, slot) === 0
    const due = order.choose === "weighted"
      ? this.#spare.first((slot) => !slot.cleaning && order.isDue(slot) && isWanted(slot))
      : undefined
    if (due !== undefined) return due.value
    if (avoid.size === 0 && needs === undefined) return this.#spare.peek()?.value
    const best = this.#spare.first(isWanted)
    if (best !== undefined) return best.value
    return avoid.size === 0 || this.#othersInRotation(purpose)
      ? undefined
      : this.#spare.first((slot) => suitsAt(purpose, slot) === 0)?.value
  }

  get #inRotation(): number {
    return this.size - this.#cooling.size - this.#out.size
  }

  /** Whether an account is in rotation that the purpose does not avoid. */
  #othersInRotation(purpose: Extract<Purpose<A>, { readonly _tag: "Any" }>): boolean {
    const { avoid, needs } = purpose
    if (needs !== undefined) {
      for (const slot of this.#members.values()) {
        if (slot.enabled && slot.state === "ready" && !avoid.has(slot.key) && suitsAt(purpose, slot) === 0) return true
      }
      return false
    }
    let avoided = 0
    for (const key of avoid) {
      const slot = this.#members.get(key)
      if (slot?.enabled === true && slot.state === "ready") avoided++
    }
    return this.#inRotation > avoided
  }

  /** Why no account for a purpose is in rotation or returns before the deadline; `undefined` if one does. */
  refusalFor({ purpose }: Waiters<A>, deadline: number): Refusal | undefined {
    return this.#refusalOf(purpose, deadline)
  }

  #refusalOf(purpose: Purpose<A>, deadline: number): Refusal | undefined {
    if (purpose._tag === "Pinned" && !purpose.slot.member) return unknownAccount
    if (!this.#open) return unavailable
    if (purpose._tag === "Direct") return undefined
    const until = this.#backAt(purpose)
    if (until === undefined) return unavailable
    return until > Math.max(0, deadline) ? { _tag: "Cooling", until } : undefined
  }

  /** When an account for a purpose is in rotation again; 0 while one is, and `undefined` if that is unknown. */
  #backAt(purpose: AccountPurpose<A>): number | undefined {
    let until: number | undefined
    if (purpose._tag === "Pinned") until = this.#servesAt(purpose, purpose.slot)
    else if (purpose.needs === undefined) until = this.#inRotation > 0 ? 0 : this.#cooling.peek()?.key
    else {
      for (const slot of this.#members.values()) {
        const at = this.#servesAt(purpose, slot)
        if (at !== undefined && (until === undefined || at < until)) until = at
        if (until === 0) break
      }
    }
    return until === undefined ? undefined : Math.max(until, this.#spent)
  }

  /** When an account is in rotation and suits a purpose; 0 for now, and `undefined` if that is unknown. */
  #servesAt(purpose: AccountPurpose<A>, slot: SlotNode<A>): number | undefined {
    if (!slot.enabled || slot.state === "out") return undefined
    const at = Math.max(slot.state === "ready" ? 0 : slot.until, suitsAt(purpose, slot))
    return at === Number.POSITIVE_INFINITY ? undefined : at
  }

  /** Refuses the first waiters of a queue as long as no account can serve them in time, whatever they need of it. */
  #refuse(queue: Waiters<A>): void {
    const { purpose } = queue
    const plain = purpose._tag === "Direct" ? purpose : { ...purpose, needs: undefined }
    for (let head = queue.head; head !== undefined; head = queue.head) {
      const refusal = this.#refusalOf(plain, head.deadline)
      if (refusal === undefined) return
      this.#queue.giveUp(head, refusal)
    }
  }

  /** Refuses the waiters that are pinned to an account, as far as it serves them in no time. */
  #refusePinned({ queues }: SlotNode<A>): void {
    for (const queue of queues ?? []) this.#refuse(queue)
  }

  #refuseShared(): void {
    if (this.#open && this.#spent === 0 && this.#inRotation > 0) return
    this.#queue.release(this)
    this.#refuse(this.#any)
    for (const queue of this.#others.values()) if (queue.purpose._tag === "Any") this.#refuse(queue)
    for (const place of this.#parked) {
      const refusal = this.refusalFor(place.queue as Waiters<A>, place.deadline)
      if (refusal !== undefined) this.#queue.giveUp(place, refusal)
    }
  }

  /** The queues that `#servable` has found to suit nothing. */
  #unsuited: Array<Waiters<A>> = []
  readonly #servable = (queue: Waiters<A>): boolean => {
    const { purpose } = queue
    if (purpose._tag === "Direct" || (purpose._tag === "Pinned" && purpose.needs === undefined)) return true
    if (this.#pick(purpose) !== undefined) return true
    if (purpose.needs !== undefined) this.#unsuited.push(queue)
    return false
  }

  next(): Place<A> | undefined {
    if (!this.#open || this.#waiting === 0 || this.#inUse >= this.#limits.global) return undefined
    return this.#nextQueue()?.head
  }

  #nextQueue(): Waiters<A> | undefined {
    if (this.#spare.size > 0 && this.#spent === 0) {
      const found = this.#queues.first(this.#servable)?.value
      if (this.#unsuited.length > 0) {
        for (const queue of this.#unsuited) this.#block(queue)
        this.#unsuited = []
      }
      return found
    }
    return this.#direct.head === undefined || !this.#directAllowed ? undefined : this.#direct
  }
}
