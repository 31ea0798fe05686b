/**
 * The synchronous core of the pool: slots, rotation, limits, the queue, who is in rotation. No Effects, no clock, no
 * randomness: times come in as arguments, so that generated interleavings can be held against a plain model.
 *
 * The one thing to know: after every call, no waiting ticket could be served by what is free. A newcomer therefore never
 * overtakes a waiter that could have had its slot, and a freed slot goes to exactly the first waiter who can use it.
 *
 * Rules: behaviour "The pool", spec "Limits". Every call costs O(log n) in accounts and waiters, but for `configure` and
 * for the refusal of waiters for whom there is no hope left, which costs that for each of them.
 */
import { eachSliced, type Sliced } from "../domain/stream/slices.ts"
import { Heap, type HeapEntry, heapEntry } from "./heap.ts"
import { type InLine, Line } from "./line.ts"

/** How much may run and wait at once. */
export interface Limits {
  /** Slots of each account. */
  readonly perAccount: number
  /** Slots in use at once, those of callers with a token of their own included. */
  readonly global: number
  /** Tickets waiting at once; those of callers with a token of their own take at most half of the places. */
  readonly queue: number
  /** Slots that callers with a token of their own hold at once: nobody has vouched for them. */
  readonly direct: number
}

/** In rotation; not to be used before a time; out of rotation until a try of its own shows that it works again. */
export type SlotState = "ready" | "cooling" | "out"

/** One account of the pool: as many slots as the limit says. */
export interface Slot<out A> {
  readonly key: string
  /** The account as configured last. */
  readonly account: A
  readonly inUse: number
  readonly state: SlotState
  /** When a `cooling` slot comes back, or an `out` slot is to be tried again; in milliseconds. */
  readonly until: number
  /** False once the account has left the configuration; its leases run to their end. */
  readonly member: boolean
  /** False while its operator keeps it out of use: it is not given, whatever its state. */
  readonly enabled: boolean
  /** In rotation, with spare capacity. */
  readonly available: boolean
}

/** What a ticket asks for. */
export type Wish =
  /** Any account. Those in `avoid` come last, and never while another one is in rotation. */
  | { readonly _tag: "Any"; readonly avoid: ReadonlySet<string> }
  /** This account and no other. */
  | { readonly _tag: "Pinned"; readonly key: string }
  /** No account, only a share of the global limit. */
  | { readonly _tag: "Direct" }

/** Why a ticket is not, or no longer, to be had. */
export type Refusal =
  /** In-flight and queue are full. */
  | { readonly _tag: "Full" }
  /** Every account that may be used is cooling, and none comes back in time. */
  | { readonly _tag: "Cooling"; readonly until: number }
  /** There is no account, or every account that may be used is out of rotation. */
  | { readonly _tag: "Unavailable" }
  /** The pinned account is not, or no longer, configured. */
  | { readonly _tag: "Unknown" }
  /** It waited as long as it may. */
  | { readonly _tag: "Late" }
  /** The gateway stops. */
  | { readonly _tag: "Closing" }

/** Called once when a waiting ticket is granted (`undefined`) or refused; never after `close`. It may call back. */
export type Notify = (refusal: Refusal | undefined) => void

/** A request that waits. */
export interface Waiting<out A> {
  /** When it began to wait, in milliseconds. */
  readonly since: number
  /** What it was asked with: `request`'s `about`. */
  readonly about: string
  /** The account that it waits for, where it waits for one alone. */
  readonly pinned: Slot<A> | undefined
}

/** Told of changes as they happen. Must be cheap, must not throw, and must not call back. */
export interface PoolChanges<in A> {
  /** The slots in use of an account, or of none, its state or whether it may be used are others now. */
  readonly slot: (slot: Slot<A> | undefined) => void
  /** Somebody waits, or no longer does. */
  readonly queue: () => void
}

/** One request's claim, from asking to release. */
export interface Ticket<out A> {
  readonly state: "waiting" | "granted" | "closed"
  /** The account that was given; `undefined` while waiting, and for `Direct`. */
  readonly slot: Slot<A> | undefined
}

const full: Refusal = { _tag: "Full" }
const unavailable: Refusal = { _tag: "Unavailable" }
const unknown: Refusal = { _tag: "Unknown" }
const late: Refusal = { _tag: "Late" }

/** Never given, in the order of arrival, comes before everything that was given. */
const neverGiven = -(2 ** 40)
/** Puts an account that is being cleaned up behind all others. */
const behindAll = 2 ** 50

/** What the tickets of one line wait for. */
type Purpose<A> =
  | { readonly _tag: "Any"; readonly avoid: ReadonlySet<string>; readonly id: string }
  | { readonly _tag: "Pinned"; readonly slot: SlotNode<A> }
  | { readonly _tag: "Direct" }

type TicketLine<A> = Line<TicketNode<A>, Purpose<A>>

class SlotNode<A> implements Slot<A> {
  readonly key: string
  account: A
  inUse = 0
  state: SlotState = "ready"
  until = 0
  member = true
  enabled = true
  cleaning = false
  /** The number of the grant that gave it last. */
  lastGiven: number
  /** Those who wait for this account and no other; made when somebody asks for it. */
  line: TicketLine<A> | undefined = undefined
  /** Place in the rotation: among the accounts with spare capacity, by `lastGiven`. */
  readonly rotation: HeapEntry<SlotNode<A>> = heapEntry(this)
  /** Place among those that cool, or among those that are out, by `until`. */
  readonly recovery: HeapEntry<SlotNode<A>> = heapEntry(this)

  constructor(key: string, account: A, lastGiven: number) {
    this.key = key
    this.account = account
    this.lastGiven = lastGiven
  }

  get available(): boolean {
    return this.rotation.position !== -1
  }

  ownLine(): TicketLine<A> {
    this.line ??= new Line<TicketNode<A>, Purpose<A>>({ _tag: "Pinned", slot: this })
    return this.line
  }
}

class TicketNode<A> implements Ticket<A>, InLine<TicketNode<A>> {
  state: "waiting" | "granted" | "closed" = "waiting"
  slot: SlotNode<A> | undefined = undefined
  /** The line it stands in; `undefined` when it never waited or no longer does. */
  line: TicketLine<A> | undefined = undefined
  previous: TicketNode<A> | undefined = undefined
  next: TicketNode<A> | undefined = undefined
  number = 0
  since = 0
  deadline = 0
  about = ""
  notify: Notify | undefined = undefined
}

const noAvoid: ReadonlySet<string> = new Set()

/** The pool of one gateway; `A` is what an account is to its user. */
export class PoolState<A> {
  /** Who is told of changes, if anybody is. */
  changes: PoolChanges<A> | undefined = undefined
  #limits: Limits
  readonly #members = new Map<string, SlotNode<A>>()
  /** Accounts that have left the configuration while leases on them run. */
  readonly #draining = new Map<string, SlotNode<A>>()
  /** In rotation with spare capacity. */
  readonly #spare = new Heap<SlotNode<A>>()
  readonly #cooling = new Heap<SlotNode<A>>()
  readonly #out = new Heap<SlotNode<A>>()
  /** Lines with waiters; those for one account only while it has spare capacity. */
  readonly #lines = new Heap<TicketLine<A>>()
  readonly #direct: TicketLine<A> = new Line<TicketNode<A>, Purpose<A>>({ _tag: "Direct" })
  readonly #any: TicketLine<A> = new Line<TicketNode<A>, Purpose<A>>({ _tag: "Any", avoid: noAvoid, id: "" })
  /** Lines of those who avoid something, by what; kept only while someone stands in them. */
  readonly #choosy = new Map<string, TicketLine<A>>()
  /** Everyone who waits, in the order of arrival. */
  readonly #queue = new Set<TicketNode<A>>()
  /** Settled tickets whose `notify` is still to be called, with what it is to be told. */
  readonly #settled: Array<readonly [TicketNode<A>, Refusal | undefined]> = []
  #notifying = false
  #inUse = 0
  /** Slots that `Direct` tickets hold, and those of them that wait. */
  #directInUse = 0
  #directWaiting = 0
  #disabled = 0
  #given = 0
  #arrived = 0
  #numbered = 0

  constructor(limits: Limits) {
    this.#limits = limits
  }

  /** Slots in use, direct ones and those of draining accounts included. */
  get inUse(): number {
    return this.#inUse
  }
  get waiting(): number {
    return this.#queue.size
  }
  get limits(): Limits {
    return this.#limits
  }
  /** Configured accounts that may be used. */
  get size(): number {
    return this.#members.size - this.#disabled
  }
  /** Configured accounts that are kept out of use. */
  get disabled(): number {
    return this.#disabled
  }
  /** Accounts in rotation with spare capacity. */
  get available(): number {
    return this.#spare.size
  }
  /** Accounts that cool; no disabled one. */
  get cooling(): number {
    return this.#cooling.size
  }
  /** Accounts that are out; no disabled one. */
  get out(): number {
    return this.#out.size
  }
  /** The earliest time at which `recover` has something to do; infinity where there is none. */
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

  /** Those who wait, the one that came first before all others. */
  *queued(): IterableIterator<Waiting<A>> {
    for (const { about, line, since } of this.#queue) {
      yield { since, about, pinned: line?.purpose._tag === "Pinned" ? line.purpose.slot : undefined }
    }
  }

  /** Accounts that have left the configuration and still have leases. */
  get draining(): ReadonlyMap<string, Slot<A>> {
    return this.#draining
  }

  /**
   * Asks for a slot: a granted ticket, a waiting one that `notify` tells about, or a refusal. `now` and `patience` are in
   * milliseconds; what cannot be served before `now + patience` is refused at once. Who gives up waiting calls `close`.
   * `about` says of a ticket that waits what it is for.
   */
  request(wish: Wish, now: number, patience: number, notify: Notify, about = ""): Ticket<A> | Refusal {
    const line = this.#lineOf(wish)
    if (line === undefined) return unknown
    const deadline = now + patience
    const hopeless = this.#hopeless(line.purpose, deadline)
    if (hopeless !== undefined) return hopeless
    const ticket = new TicketNode<A>()
    const direct = line.purpose._tag === "Direct"
    if (this.#inUse < this.#limits.global) {
      const slot = this.#pick(line.purpose)
      if (slot !== undefined || (direct && this.#directAllowed)) {
        this.#give(ticket, slot)
        return ticket
      }
    }
    const noPlace = this.#queue.size >= this.#limits.queue ||
      (direct && this.#directWaiting >= Math.floor(this.#limits.queue / 2))
    if (noPlace) return this.#hopeless(line.purpose, now) ?? full
    ticket.number = ++this.#numbered
    ticket.since = now
    ticket.deadline = deadline
    ticket.about = about
    ticket.notify = notify
    this.#join(line, ticket)
    return ticket
  }

  /** Gives a slot back, or leaves the queue. Only the first call does something. */
  close(ticket: Ticket<A>): void {
    const node = ticket as TicketNode<A>
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
      this.#placeLine(this.#direct)
    } else {
      slot.inUse--
      if (slot.member) this.#place(slot)
      else if (slot.inUse === 0) this.#draining.delete(slot.key)
    }
    this.#serve()
  }

  /** Why a ticket is refused whose time in the queue is over: no account is in rotation for it, or it is just `Late`. */
  late(ticket: Ticket<A>): Refusal {
    const line = (ticket as TicketNode<A>).line
    return (line === undefined ? undefined : this.#hopeless(line.purpose, Number.NEGATIVE_INFINITY)) ?? late
  }

  /** Takes an account out of rotation: until `until` (`cooling`), or to be tried again at `until` (`out`). */
  suspend(slot: Slot<A>, state: "cooling" | "out", until: number): void {
    const node = slot as SlotNode<A>
    if (!node.member) return
    this.#setState(node, state, until)
    if (node.line !== undefined) this.#refuse(node.line)
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
   * Puts cooled accounts whose time has come back into rotation, and returns those that are out and due for a try: they
   * stay out, and are not due again, until `suspend` or `restore` says more.
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

  /** Marks an account as being cleaned up: it is given only when no other account has spare capacity. */
  setCleaning(slot: Slot<A>, cleaning: boolean): void {
    const node = slot as SlotNode<A>
    node.cleaning = cleaning
    this.#place(node)
  }

  /**
   * New accounts, by key, and limits. Nobody is dropped: running tickets go on counting, an account that left drains (and is
   * the same one if it comes back meanwhile), waiting tickets keep their places; those pinned to an account that left, or
   * that is among the `disabled` ones now, are refused. O(n log n), in slices: between two of them the pool works with
   * accounts of before and after.
   */
  *configure(
    accounts: ReadonlyMap<string, A>,
    limits: Limits,
    disabled: ReadonlySet<string> = new Set()
  ): Sliced<void> {
    this.#limits = limits
    this.#placeLine(this.#direct)
    // What comes is there before what goes is gone, so that nobody finds the pool empty.
    yield* eachSliced(accounts, ([key, account]) => {
      const slot = this.#members.get(key) ?? this.#add(key, account)
      slot.account = account
      this.#setEnabled(slot, !disabled.has(key))
    })
    yield* eachSliced(this.#members.values(), (slot) => {
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
    if (slot.line !== undefined) this.#refuse(slot.line)
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

  /** A disabled account keeps its state, but nobody tries it: its recovery waits until it is enabled. */
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
      if (!enabled && slot.line !== undefined) this.#refuse(slot.line)
    }
    this.#place(slot)
  }

  /** Puts an account, and the line of those who wait for it, where its state says. */
  #place(slot: SlotNode<A>): void {
    if (slot.member && slot.enabled && slot.state === "ready" && slot.inUse < this.#limits.perAccount) {
      this.#spare.put(slot.rotation, slot.cleaning ? slot.lastGiven + behindAll : slot.lastGiven)
    } else {
      this.#spare.remove(slot.rotation)
    }
    if (slot.line?.head !== undefined) this.#placeLine(slot.line)
  }

  #placeLine(line: TicketLine<A>): void {
    const head = line.head
    const { purpose } = line
    if (
      head === undefined || (purpose._tag === "Pinned" && !purpose.slot.available) ||
      (purpose._tag === "Direct" && !this.#directAllowed)
    ) {
      this.#lines.remove(line.entry)
    } else {
      this.#lines.put(line.entry, head.number)
    }
  }

  /** Whether callers with a token of their own may hold one slot more. */
  get #directAllowed(): boolean {
    return this.#directInUse < this.#limits.direct
  }

  #lineOf(wish: Wish): TicketLine<A> | undefined {
    if (wish._tag === "Direct") return this.#direct
    if (wish._tag === "Pinned") return this.#members.get(wish.key)?.ownLine()
    if (wish.avoid.size === 0) return this.#any
    const id = [...wish.avoid].sort().join("\n")
    return this.#choosy.get(id) ?? new Line<TicketNode<A>, Purpose<A>>({ _tag: "Any", avoid: new Set(wish.avoid), id })
  }

  #join(line: TicketLine<A>, ticket: TicketNode<A>): void {
    line.join(ticket)
    ticket.line = line
    this.#queue.add(ticket)
    this.changes?.queue()
    if (line === this.#direct) this.#directWaiting++
    if (line.purpose._tag === "Any" && line !== this.#any) this.#choosy.set(line.purpose.id, line)
    this.#placeLine(line)
  }

  #leave(ticket: TicketNode<A>): void {
    const line = ticket.line!
    line.leave(ticket)
    ticket.line = undefined
    this.#queue.delete(ticket)
    this.changes?.queue()
    if (line === this.#direct) this.#directWaiting--
    if (line.purpose._tag === "Any" && line.head === undefined) this.#choosy.delete(line.purpose.id)
    this.#placeLine(line)
  }

  #give(ticket: TicketNode<A>, slot: SlotNode<A> | undefined): void {
    ticket.state = "granted"
    ticket.slot = slot
    this.#inUse++
    this.changes?.slot(slot)
    if (slot === undefined) {
      this.#directInUse++
      this.#placeLine(this.#direct)
      return
    }
    slot.inUse++
    slot.lastGiven = ++this.#given
    this.#place(slot)
  }

  /** The account that a purpose would be given now. */
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

  /** Why nothing that serves a purpose is in rotation, or comes back before the deadline. */
  #hopeless(purpose: Purpose<A>, deadline: number): Refusal | undefined {
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

  /** Refuses those at the front of a line for whom there is no hope left. */
  #refuse(line: TicketLine<A>): void {
    for (let head = line.head; head !== undefined; head = line.head) {
      const refusal = this.#hopeless(line.purpose, head.deadline)
      if (refusal === undefined) return
      this.#leave(head)
      head.state = "closed"
      this.#settled.push([head, refusal])
    }
  }

  #refuseShared(): void {
    if (this.#inRotation > 0) return
    this.#refuse(this.#any)
    for (const line of this.#choosy.values()) this.#refuse(line)
  }

  readonly #servable = (line: TicketLine<A>): boolean =>
    line.purpose._tag !== "Any" || this.#pick(line.purpose) !== undefined

  /** The line whose first waiter came before all others that can be served now. */
  #nextLine(): TicketLine<A> | undefined {
    if (this.#spare.size > 0) return this.#lines.first(this.#servable)?.value
    return this.#direct.head === undefined || !this.#directAllowed ? undefined : this.#direct
  }

  /** Gives what is free to those who wait, in order, and tells everyone who is settled. */
  #serve(): void {
    while (this.#queue.size > 0 && this.#inUse < this.#limits.global) {
      const line = this.#nextLine()
      const head = line?.head
      if (line === undefined || head === undefined) break
      const slot = this.#pick(line.purpose)
      this.#leave(head)
      this.#give(head, slot)
      this.#settled.push([head, undefined])
    }
    if (this.#settled.length > 0 && !this.#notifying) this.#notify()
  }

  /** Those who are told may call back, so this happens only when all is in order, and never within itself. */
  #notify(): void {
    this.#notifying = true
    for (let i = 0; i < this.#settled.length; i++) {
      const [ticket, refusal] = this.#settled[i]!
      const notify = ticket.notify
      ticket.notify = undefined
      if (notify !== undefined) notify(refusal)
    }
    this.#settled.length = 0
    this.#notifying = false
  }
}
