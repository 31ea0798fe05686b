/** The rules of several pools in the simplest form: `NaivePool` for each, one list of waiters, and each call scans everything. */
import type { LeaseRequest, Limits, Refusal, SlotState } from "../../src/placement/PoolState.ts"
import { NaivePool, type Outcomes } from "./naivePool.ts"

/** One of the pools. Its waiters are those of all pools that have a place in it, so it serves none by itself. */
class NaiveMember extends NaivePool {
  readonly name: string
  open = true
  skipped: "no" | "probe" | "yes" = "no"

  constructor(name: string, limits: Limits) {
    super(limits)
    this.name = name
  }

  override serve(): Outcomes {
    return { given: [], refused: new Map() }
  }

  override hopeless(leaseRequest: LeaseRequest, deadline: number): Refusal["_tag"] | undefined {
    const why = super.hopeless(leaseRequest, deadline)
    return this.open || why === "Unknown" ? why : "Unavailable"
  }

  override pick(leaseRequest: LeaseRequest) {
    return this.open ? super.pick(leaseRequest) : undefined
  }

  get freeShare(): number {
    const slots = this.accounts.filter((account) => this.isReady(account)).length * this.limits.perAccount
    const all = Math.min(slots, this.limits.global)
    return all === 0 ? 0 : (all - this.inUse) / all
  }
}

export interface NaiveRequest {
  readonly pools: ReadonlyArray<string>
  readonly leaseRequest: LeaseRequest
  readonly spread: "order" | "even"
  readonly hold: boolean
}

interface NaiveWaiter {
  readonly id: number
  readonly asked: NaiveRequest
  readonly deadline: number
  places: Array<NaiveMember>
  /** The pools that it does not wait at yet. */
  later: Array<NaiveMember> | undefined
  lost: Array<Refusal["_tag"]>
}

export interface NaiveConfig {
  readonly keys: ReadonlyArray<string>
  readonly limits: Limits
  readonly disabled: ReadonlyArray<string>
  readonly enabled: boolean
}

/** `Cooling` says when to come back; else the first reason counts. */
const together = (refusals: ReadonlyArray<Refusal["_tag"]>): Refusal["_tag"] =>
  refusals.includes("Cooling") ? "Cooling" : refusals[0] ?? "Unavailable"

export class NaivePools {
  limit = 0
  pools: Array<NaiveMember> = []
  leaving: Array<NaiveMember> = []
  waiters: Array<NaiveWaiter> = []
  outcomes: Outcomes = { given: [], refused: new Map() }

  get all(): Array<NaiveMember> {
    return [...this.pools, ...this.leaving]
  }

  get inUse(): number {
    return this.all.reduce((sum, pool) => sum + pool.inUse, 0)
  }

  pool(name: string): NaiveMember | undefined {
    return this.pools.find((pool) => pool.name === name)
  }

  choose(pools: ReadonlyArray<NaiveMember>, { spread, leaseRequest }: NaiveRequest): NaiveMember | undefined {
    if (this.inUse >= this.limit) return undefined
    const others = pools.filter((pool) => pool.skipped !== "yes")
    const hasOther = others.some((pool) => pool.pick(leaseRequest) !== undefined || pool.hasPlace(leaseRequest))
    const able = (hasOther ? others : pools).filter((pool) => pool.pick(leaseRequest) !== undefined)
    if (spread === "order") return able[0]
    return able.find((pool) => able.every((other) => other.freeShare <= pool.freeShare))
  }

  join(waiter: NaiveWaiter, pool: NaiveMember): void {
    if (!pool.hasPlace(waiter.asked.leaseRequest)) return
    waiter.places.push(pool)
    pool.waiters.push({ id: waiter.id, leaseRequest: waiter.asked.leaseRequest, deadline: waiter.deadline })
  }

  leave(waiter: NaiveWaiter, pool: NaiveMember): void {
    waiter.places = waiter.places.filter((other) => other !== pool)
    pool.waiters = pool.waiters.filter((other) => other.id !== waiter.id)
  }

  leaveAll(waiter: NaiveWaiter): void {
    for (const pool of waiter.places) this.leave(waiter, pool)
    this.waiters = this.waiters.filter((other) => other !== waiter)
  }

  widenOne(waiter: NaiveWaiter): void {
    const later = waiter.later ?? []
    waiter.later = undefined
    for (const { name } of later) {
      const pool = this.pool(name)
      const why = pool === undefined ? "Unavailable" : pool.hopeless(waiter.asked.leaseRequest, waiter.deadline)
      if (pool !== undefined && why === undefined) this.join(waiter, pool)
      else if (why !== undefined) waiter.lost.push(why)
    }
  }

  /** The places that count: those in skipped pools only if there is no other one. */
  active(waiter: NaiveWaiter): Array<NaiveMember> {
    const others = waiter.places.filter((pool) => pool.skipped !== "yes")
    return others.length > 0 ? others : waiter.places
  }

  give(id: number, pool: NaiveMember, { leaseRequest }: NaiveRequest): void {
    pool.give(id, pool.pick(leaseRequest)!, this.outcomes)
    if (pool.skipped === "probe") this.skipOne(pool, "yes")
  }

  skipOne(pool: NaiveMember, skipped: NaiveMember["skipped"]): void {
    pool.skipped = skipped
    for (const waiter of this.waiters) {
      if (skipped === "yes" && waiter.later !== undefined && waiter.places.includes(pool)) this.widenOne(waiter)
    }
  }

  skip(name: string, skipped: NaiveMember["skipped"]): void {
    const pool = this.pool(name)
    if (pool !== undefined) this.skipOne(pool, skipped)
    this.serve()
  }

  giveUp(waiter: NaiveWaiter, pool: NaiveMember, why: Refusal["_tag"]): void {
    waiter.lost.push(why)
    this.widenOne(waiter)
    this.leave(waiter, pool)
    if (waiter.places.length > 0) return
    this.leaveAll(waiter)
    this.outcomes.refused.set(waiter.id, together(waiter.lost))
  }

  /** Gives up the places in a pool that cannot serve them in time. */
  settle(pool: NaiveMember): void {
    const rotates = pool.open && pool.accounts.some((account) => pool.isReady(account))
    for (const waiter of this.waiters) {
      if (waiter.later !== undefined && waiter.places.includes(pool) && !rotates) this.widenOne(waiter)
    }
    for (const waiter of this.waiters) {
      if (!waiter.places.includes(pool)) continue
      const why = pool.hopeless(waiter.asked.leaseRequest, waiter.deadline)
      if (why !== undefined) this.giveUp(waiter, pool, why)
    }
  }

  /** Serves the first waiter that can be served, repeatedly. */
  serve(): void {
    for (;;) {
      const next = this.waiters.find((waiter) => this.choose(this.active(waiter), waiter.asked) !== undefined)
      if (next === undefined) return
      const pool = this.choose(this.active(next), next.asked)!
      this.leaveAll(next)
      this.give(next.id, pool, next.asked)
    }
  }

  request(id: number, asked: NaiveRequest, now: number, patience: number): void {
    const refusals: Array<Refusal["_tag"]> = []
    const able: Array<NaiveMember> = []
    for (const name of asked.pools) {
      const pool = this.pool(name)
      if (pool === undefined) continue
      const why = pool.hopeless(asked.leaseRequest, now + patience)
      if (why === undefined) able.push(pool)
      else refusals.push(why)
    }
    if (able.length === 0) {
      this.outcomes.refused.set(id, together(refusals))
      return
    }
    const first = able[0]!
    const rotates = asked.leaseRequest._tag === "Direct" || (asked.leaseRequest._tag === "Pinned"
      ? first.accounts.some(({ key, state }) =>
        asked.leaseRequest._tag === "Pinned" && key === asked.leaseRequest.key && state === "ready"
      )
      : first.accounts.some((account) => first.isReady(account)))
    const isServable = this.choose([first], asked) !== undefined
    const holds = asked.hold && able.length > 1 && first.name === asked.pools[0] && first.skipped !== "yes" &&
      rotates && !isServable &&
      first.hasPlace(asked.leaseRequest)
    const chosen = holds ? undefined : this.choose(able, asked)
    if (chosen !== undefined) {
      this.give(id, chosen, asked)
      this.serve()
      return
    }
    const waiter: NaiveWaiter = { id, asked, deadline: now + patience, places: [], later: undefined, lost: [] }
    for (const pool of holds ? [first] : able) this.join(waiter, pool)
    if (holds) waiter.later = able.slice(1)
    if (waiter.places.length > 0) {
      this.waiters.push(waiter)
      return
    }
    const why = able.map((pool) => pool.hopeless(asked.leaseRequest, now))
    const isFull = why.some((refusal) => refusal === undefined)
    this.outcomes.refused.set(id, isFull ? "Full" : together([...refusals, ...why.flatMap((refusal) => refusal ?? [])]))
  }

  close(id: number): void {
    const waiter = this.waiters.find((waiter) => waiter.id === id)
    if (waiter !== undefined) return this.leaveAll(waiter)
    for (const pool of this.all) if (pool.running.has(id)) pool.close(id)
    this.serve()
    this.leaving = this.leaving.filter((pool) => pool.inUse > 0)
  }

  widen(id: number): void {
    const waiter = this.waiters.find((waiter) => waiter.id === id)
    if (waiter !== undefined) this.widenOne(waiter)
    this.serve()
  }

  drop(id: number, name: string): void {
    const waiter = this.waiters.find((waiter) => waiter.id === id)
    const pool = this.pool(name)
    if (waiter === undefined || pool === undefined) return
    waiter.later = waiter.later?.filter((other) => other !== pool)
    if (waiter.places.includes(pool)) this.giveUp(waiter, pool, "Unavailable")
    this.serve()
  }

  setState(name: string, key: string, state: SlotState, until: number): void {
    const pool = this.pool(name)
    if (pool === undefined) return
    pool.setState(key, state, until)
    this.settle(pool)
    this.serve()
  }

  recover(now: number): ReadonlyArray<string> {
    return this.pools.flatMap((pool) => {
      const { due } = pool.recover(now)
      this.serve()
      return due
    })
  }

  configure(pools: ReadonlyMap<string, NaiveConfig>, limit: number): void {
    this.limit = limit
    for (const pool of this.pools) {
      const next = pools.get(pool.name)
      pool.open = next?.enabled ?? false
      if (next !== undefined) pool.limits = next.limits
    }
    for (const [name, { disabled, enabled, keys, limits }] of pools) {
      const pool = this.pool(name) ?? this.leaving.find((pool) => pool.name === name) ?? new NaiveMember(name, limits)
      this.leaving = this.leaving.filter((other) => other !== pool)
      if (!this.pools.includes(pool)) this.pools.push(pool)
      pool.open = enabled
      pool.configure(keys, limits, disabled)
      this.settle(pool)
    }
    for (const pool of this.pools) {
      if (pools.has(pool.name)) continue
      this.pools = this.pools.filter((other) => other !== pool)
      this.leaving = [...this.leaving, pool]
      pool.open = false
      pool.configure([], pool.limits)
      this.settle(pool)
      pool.skipped = "no"
      this.leaving = this.leaving.filter((pool) => pool.inUse > 0)
    }
    this.serve()
  }
}
