/** The pool's rules in the simplest form: one list of accounts, one list of waiters, and each call scans everything. */
import type { LeaseRequest, Limits, Refusal, SlotState } from "../../src/placement/PoolState.ts"

export interface NaiveAccount {
  readonly key: string
  inUse: number
  state: SlotState
  until: number
  stated: number
  lastGiven: number
  cleaning: boolean
  enabled: boolean
}

interface Waiter {
  readonly id: number
  readonly leaseRequest: LeaseRequest
  readonly deadline: number
}

/**
 * The outcomes of a call: granted requests, in order, with their account (`undefined` for a direct one), and rejected
 * requests.
 */
export interface Outcomes {
  readonly given: Array<readonly [id: number, key: string | undefined]>
  readonly refused: Map<number, Refusal["_tag"]>
}

export class NaivePool {
  limits: Limits
  accounts: Array<NaiveAccount> = []
  draining: Array<NaiveAccount> = []
  waiters: Array<Waiter> = []
  running = new Map<number, NaiveAccount | undefined>()
  given = 0
  arrived = 0
  now = 0

  constructor(limits: Limits) {
    this.limits = limits
  }

  get inUse(): number {
    return this.running.size
  }

  get directInUse(): number {
    return [...this.running.values()].filter((account) => account === undefined).length
  }

  /** Whether the queue has a place: direct requests may take half of the places. */
  hasPlace(leaseRequest: LeaseRequest): boolean {
    const direct = this.waiters.filter((waiter) => waiter.leaseRequest._tag === "Direct").length
    return this.waiters.length < this.limits.queue &&
      (leaseRequest._tag !== "Direct" || direct + 1 <= this.limits.queue / 2)
  }

  isReady(account: NaiveAccount): boolean {
    return account.enabled && account.state === "ready"
  }

  isAvailable(account: NaiveAccount): boolean {
    return this.isReady(account) && account.inUse < this.limits.perAccount && this.accounts.includes(account)
  }

  get available(): Array<NaiveAccount> {
    return this.accounts.filter((account) => this.isAvailable(account)).sort((a, b) =>
      Number(a.cleaning) - Number(b.cleaning) || a.lastGiven - b.lastGiven
    )
  }

  /** The account for a request; "none" if it needs no account; `undefined` if it must wait. */
  pick(leaseRequest: LeaseRequest): NaiveAccount | "none" | undefined {
    if (this.inUse >= this.limits.global) return undefined
    if (leaseRequest._tag === "Direct") return this.directInUse < this.limits.direct ? "none" : undefined
    const available = this.available
    if (leaseRequest._tag === "Pinned") return available.find((account) => account.key === leaseRequest.key)
    const others = this.accounts.filter((account) => this.isReady(account) && !leaseRequest.avoid.has(account.key))
    return available.find((account) => !leaseRequest.avoid.has(account.key)) ??
      (others.length === 0 ? available[0] : undefined)
  }

  hopeless(leaseRequest: LeaseRequest, deadline: number): Refusal["_tag"] | undefined {
    if (leaseRequest._tag === "Direct") return undefined
    const pinned = leaseRequest._tag === "Pinned"
    const candidates = this.accounts.filter((account) => !pinned || account.key === leaseRequest.key)
    if (pinned && candidates.length === 0) return "Unknown"
    if (candidates.some((account) => this.isReady(account))) return undefined
    const cooling = candidates.filter((account) => account.enabled && account.state === "cooling")
    if (cooling.length === 0) return "Unavailable"
    return cooling.every((account) => account.until > deadline) ? "Cooling" : undefined
  }

  give(id: number, account: NaiveAccount | "none", outcomes: Outcomes): void {
    if (account === "none") {
      this.running.set(id, undefined)
      outcomes.given.push([id, undefined])
      return
    }
    account.inUse++
    if (account.stated > this.now) {
      Object.assign(account, { state: "cooling", until: Math.min(account.stated, this.now + 3_600_000) })
    }
    account.lastGiven = ++this.given
    this.running.set(id, account)
    outcomes.given.push([id, account.key])
  }

  /** Rejects the waiters that no account can serve in time, then serves the first waiter that can be served, repeatedly. */
  serve(): Outcomes {
    const outcomes: Outcomes = { given: [], refused: new Map() }
    const refuse = () => {
      this.waiters = this.waiters.filter((waiter) => {
        const refusal = this.hopeless(waiter.leaseRequest, waiter.deadline)
        if (refusal !== undefined) outcomes.refused.set(waiter.id, refusal)
        return refusal === undefined
      })
    }
    refuse()
    for (;;) {
      const next = this.waiters.find((waiter) => this.pick(waiter.leaseRequest) !== undefined)
      if (next === undefined) {
        refuse()
        return outcomes
      }
      this.waiters = this.waiters.filter((waiter) => waiter !== next)
      this.give(next.id, this.pick(next.leaseRequest)!, outcomes)
    }
  }

  request(id: number, leaseRequest: LeaseRequest, now: number, patience: number): Outcomes {
    this.now = now
    const outcomes: Outcomes = { given: [], refused: new Map() }
    const hopeless = this.hopeless(leaseRequest, now + patience)
    const account = this.pick(leaseRequest)
    if (hopeless !== undefined) outcomes.refused.set(id, hopeless)
    else if (account !== undefined) this.give(id, account, outcomes)
    else if (!this.hasPlace(leaseRequest)) outcomes.refused.set(id, this.hopeless(leaseRequest, now) ?? "Full")
    else this.waiters.push({ id, leaseRequest, deadline: now + patience })
    return outcomes
  }

  close(id: number): Outcomes {
    this.waiters = this.waiters.filter((waiter) => waiter.id !== id)
    const account = this.running.get(id)
    this.running.delete(id)
    if (account !== undefined) account.inUse--
    this.draining = this.draining.filter((account) => account.inUse > 0)
    return this.serve()
  }

  setState(key: string, state: SlotState, until: number, stated = 0): Outcomes {
    const account = this.accounts.find((account) => account.key === key)
    if (account !== undefined) Object.assign(account, { state, until, stated: state === "cooling" ? stated : 0 })
    return this.serve()
  }

  recover(now: number): { readonly due: Array<string>; readonly outcomes: Outcomes } {
    this.now = now
    const due: Array<string> = []
    for (const account of this.accounts.filter((account) => account.enabled)) {
      if (account.state === "cooling" && account.until <= now) Object.assign(account, { state: "ready", until: 0 })
      if (account.state === "out" && account.until <= now) {
        account.until = Number.POSITIVE_INFINITY
        due.push(account.key)
      }
    }
    return { due, outcomes: this.serve() }
  }

  setCleaning(key: string, cleaning: boolean): void {
    const account = this.accounts.find((account) => account.key === key)
    if (account !== undefined) account.cleaning = cleaning
  }

  configure(keys: ReadonlyArray<string>, limits: Limits, disabled: ReadonlyArray<string> = []): Outcomes {
    this.limits = limits
    const leaving = this.accounts.filter((account) => !keys.includes(account.key))
    for (const account of leaving) Object.assign(account, { state: "ready", until: 0, stated: 0 })
    const drained = [...this.draining, ...leaving.filter((account) => account.inUse > 0)]
    const known = [...this.accounts.filter((account) => keys.includes(account.key)), ...drained]
    this.accounts = [
      ...this.accounts.filter((account) => keys.includes(account.key)),
      ...keys.filter((key) => !this.accounts.some((account) => account.key === key)).map((key) =>
        known.find((account) => account.key === key) ??
          {
            key,
            inUse: 0,
            state: "ready" as const,
            until: 0,
            stated: 0,
            lastGiven: -1e9 + this.arrived++,
            cleaning: false,
            enabled: true
          }
      )
    ]
    this.draining = drained.filter((account) => !keys.includes(account.key))
    for (const account of this.accounts) account.enabled = !disabled.includes(account.key)
    return this.serve()
  }
}
