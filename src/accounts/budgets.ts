/**
 * The budgets of accounts and upstreams: what a try reserves of them at its lease, and settles at its end. The rules are the same as of key limits
 * (`usage/keyRules.ts`), for one account or upstream in place of one key.
 *
 * The one thing to know: the check of all budgets of a try and their reservations are one synchronous step. A budget without anything left
 * takes its account, or its upstream, out of rotation (`PoolState.spend`); one with too little for a try leaves that try to others
 * (`placement/needs.ts`).
 */
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { Notices } from "../config/Notices.ts"
import type { KeyLimit } from "../config/windowLimit.ts"
import { GatewayError } from "../domain/GatewayError.ts"
import { never } from "../placement/poolQueue.ts"
import {
  advanceTo,
  type CountedState,
  exceededBy,
  moveTo,
  Reservation,
  type Share,
  shareIn,
  stateAt,
  type Used,
  type WindowCount
} from "../usage/Admission.ts"
import { BudgetNotices, type LimitOwner } from "../usage/budgetNotices.ts"
import { noLimits } from "../usage/keyRules.ts"
import { usedWindows } from "../usage/limitedWindows.ts"
import type { AccountHistory } from "../usage/UsageStoreShape.ts"
import type { PooledAccount } from "./PooledAccount.ts"

/** What a try uses of the budgets of its account and upstream. */
export interface LeaseBudget {
  /**
   * What it reserves of budgets of an upstream or its account, or the error of a try that strict ones cannot bound. `now` is in Unix
   * milliseconds.
   */
  readonly shareOf: (upstream: string, limits: ReadonlyArray<KeyLimit>, now: number) => Share | GatewayError
  /** What it reserves of any budget of an upstream or its accounts, with the most that it can use if it is bounded. */
  readonly sharesOf: (upstream: string, now: number) => Share
  /** What it has used; called once, when its lease ends. `now` is in Unix milliseconds. */
  readonly used: (now: number) => Used
  /** Set with its lease: what it has reserved is the most that it can use. */
  isStrict: boolean
}

/** Accounts and upstreams whose counts are kept: more than have budgets, unless the configuration changes all the time. */
const mostSubjects = 100_000

const unused = { requests: 0, tokens: 0 }
const unusedCounters = {
  windows: { minute: unused, hour: unused, day: unused, week: unused, month: unused },
  lastUsedAt: undefined
}

/** Why an account or an upstream at its budget is out, for operators. */
export const budgetUsedUp = "its budget is used up"

const budgeted = new WeakMap<GatewayConfig, boolean>()

/** Whether a configuration has a budget of an account or an upstream. Looks at each account once for each configuration. */
export const hasBudgets = (config: GatewayConfig): boolean => {
  let found = budgeted.get(config)
  if (found === undefined) {
    found = config.accounts.some(({ budgets = noLimits }) => budgets.length > 0) ||
      Array.from(config.upstreams.values()).some(({ budgets = noLimits }) => budgets.length > 0)
    budgeted.set(config, found)
  }
  return found
}

/** The budgets of an account, and those of its upstream. */
export const budgetsOf = (
  { account }: Pick<PooledAccount, "account">,
  upstream: string,
  config: GatewayConfig
): readonly [own: ReadonlyArray<KeyLimit>, ofUpstream: ReadonlyArray<KeyLimit>] => [
  account?.budgets ?? noLimits,
  config.upstreams.get(upstream)?.budgets ?? noLimits
]

/** Names an upstream where its counts stand beside those of accounts, which have their hashes. */
export const upstreamSubject = (upstream: string): string => `@${upstream}`

/** When the last window of a budget that is used up ends, in Unix milliseconds; 0 while all have something left. */
export const spentUntil = (windows: ReadonlyArray<Readonly<WindowCount>>, limits: ReadonlyArray<KeyLimit>): number => {
  let until = 0
  for (const limit of limits) {
    const count = windows.find(({ window }) => window === limit.window)
    if (count === undefined) continue
    const isSpent = count.requests >= (limit.requests ?? Number.POSITIVE_INFINITY) ||
      count.tokens >= (limit.tokens ?? Number.POSITIVE_INFINITY) ||
      (limit.cost !== undefined && count.cost >= limit.cost)
    if (isSpent) until = Math.max(until, count.resetsAt)
  }
  return until
}

/** A budget with what is used of it, as operators see it: times are Unix milliseconds, costs decimal numbers. */
export type BudgetFacts = Omit<ReturnType<typeof usedWindows>[number], "fallback">

/** Budgets with what is used of them. */
export const factsOfBudgets = (
  limits: ReadonlyArray<KeyLimit>,
  windows: ReadonlyArray<Readonly<WindowCount>>
): ReadonlyArray<BudgetFacts> => usedWindows(limits, windows).map(({ fallback: _, ...facts }) => facts)

/** What a try has reserved. */
export interface Taken {
  /** Replaces what was reserved by what the try has used. Only the first call has an effect. */
  readonly settle: (used: Used) => void
}

const nothing: Taken = { settle: () => undefined }

/** What an upstream's counts, and an account's, are known by. */
type Subjects = readonly [own: string, ofUpstream: string]

const subjectsOf = (account: PooledAccount): Subjects => [account.hash, upstreamSubject(account.upstream)]

const unnamed = { key: null, name: null, account: null, note: null }

/** The budgets of a process. */
export class Budgets {
  readonly #states = new Map<string, CountedState>()
  readonly #config: () => GatewayConfig
  readonly #now: () => number
  readonly #history: Pick<AccountHistory, "count" | "counters"> | undefined
  readonly #notices: BudgetNotices | undefined
  /** Is called when what an account and its upstream have used changes, if set. */
  changed: ((account: PooledAccount) => void) | undefined

  /** `now` is in Unix milliseconds. `history` keeps what is used; without it the counts begin with the process. */
  constructor(
    config: () => GatewayConfig,
    now: () => number,
    history?: Pick<AccountHistory, "count" | "counters">,
    notices?: Notices
  ) {
    this.#config = config
    this.#now = now
    this.#history = history
    this.#notices = notices && new BudgetNotices(notices)
  }

  /**
   * When the budgets of an account and its upstream have room for a try, in Unix milliseconds; 0 for now. For a try that is larger than a whole
   * budget `never` is added to the end of the window. A try that strict ones cannot bound has room: the account that it gets refuses it.
   */
  roomAt(
    account: PooledAccount,
    shareOf: (limits: ReadonlyArray<KeyLimit>, now: number) => Share | GatewayError
  ): number {
    const owners = this.#ownersOf(account)
    if (owners.length === 0) return 0
    const now = this.#now()
    let until = 0
    for (const owner of owners) {
      const { limits } = owner
      const share = shareOf(limits, now)
      if (share instanceof GatewayError) return 0
      const state = this.#stateOf(owner, now)
      const exceeded = exceededBy(state, limits, share)
      if (exceeded.length > 0) this.#notices?.refused(owner, state, limits, share)
      for (const { kind, resetsAt, window } of exceeded) {
        const own = shareIn(share, window)
        const limit = limits.find((each) => each.window === window)!
        const isLarger = kind === "tokens" ? own.tokens > limit.tokens! : kind === "cost" && own.cost > limit.cost!
        until = Math.max(until, isLarger ? resetsAt + never : resetsAt)
      }
    }
    return until
  }

  /** Reserves what a try may use of the budgets of an account that has room for it, and of its upstream: all of it, or nothing. */
  take(account: PooledAccount, budget: LeaseBudget): Taken | GatewayError {
    budget.isStrict = false
    const owners = this.#ownersOf(account)
    if (owners.length === 0) return nothing
    const now = this.#now()
    const shares: Array<readonly [LimitOwner, CountedState, Share]> = []
    for (const owner of owners) {
      const { limits } = owner
      const share = budget.shareOf(account.upstream, limits, now)
      if (share instanceof GatewayError) return share
      shares.push([owner, this.#stateOf(owner, now), share])
    }
    budget.isStrict = shares.some(([, , { strict }]) => strict !== undefined)
    const reserved = shares.map(([owner, state, share]) =>
      [owner, new Reservation(state, owner.limits, now, share)] as const
    )
    this.changed?.(account)
    let isOver = false
    return {
      settle: (used) => {
        if (isOver) return
        isOver = true
        for (const [owner, reservation] of reserved) {
          reservation.commit(used)
          if (used.counted) this.#history?.count(owner.subject, now, used.tokens, used.cost ?? 0n)
          if (this.#notices?.isWanted === true) this.#notices.look(owner, reservation.windows)
        }
        this.changed?.(account)
      }
    }
  }

  /** Tells webhooks what the store says is used after a try: of the budgets of its account, and of its upstream. */
  saw(account: PooledAccount, used: (owner: Pick<LimitOwner, "account">) => ReadonlyArray<WindowCount>): void {
    if (this.#notices?.isWanted !== true) return
    for (const owner of this.#ownersOf(account)) this.#notices.look(owner, used(owner))
  }

  /** What has budgets: the upstream before its account, because a try that the upstream has no room for fits none of its accounts. */
  #ownersOf(account: PooledAccount): ReadonlyArray<LimitOwner> {
    const { hash, note, upstream } = account
    const [own, ofUpstream] = budgetsOf(account, upstream, this.#config())
    const [subject, subjectOfUpstream] = subjectsOf(account)
    return [
      { ...unnamed, upstream, subject: subjectOfUpstream, limits: ofUpstream },
      { ...unnamed, upstream, subject, account: hash, note, limits: own }
    ].filter(({ limits }) => limits.length > 0)
  }

  /** When the last used-up window of an account ends, and that of its upstream, in Unix milliseconds; 0 while there is something left. */
  spentOf(account: PooledAccount): readonly [own: number, ofUpstream: number] {
    const [own, ofUpstream] = budgetsOf(account, account.upstream, this.#config())
    const [subject, upstream] = subjectsOf(account)
    const now = this.#now()
    const until = (subject: string, limits: ReadonlyArray<KeyLimit>) =>
      limits.length === 0 ? 0 : spentUntil(this.#stateOf({ subject, limits }, now).windows, limits)
    return [until(subject, own), until(upstream, ofUpstream)]
  }

  /** Budgets with what is used of them: of an account, by its hash, or of an upstream (`upstreamSubject`). */
  factsOf(subject: string, limits: ReadonlyArray<KeyLimit>): ReadonlyArray<BudgetFacts> {
    return limits.length === 0 ? [] : factsOfBudgets(limits, this.#stateOf({ subject, limits }, this.#now()).windows)
  }

  /**
   * The state of a subject with the windows of now; at its first use with what the history has. A clock that was set back finds the
   * windows that it has left (`moveTo`).
   */
  #stateOf({ limits, subject }: Pick<LimitOwner, "limits" | "subject">, now: number): CountedState {
    const known = this.#states.get(subject)
    if (known !== undefined) {
      if (now < known.windows[0]!.startedAt) moveTo(known, now)
      else advanceTo(known, now)
      return known
    }
    if (this.#states.size >= mostSubjects) this.#forget()
    const state = stateAt(now, this.#history?.counters(subject, now) ?? unusedCounters)
    this.#notices?.known({ limits, subject }, state.windows)
    this.#states.set(subject, state)
    return state
  }

  /** Forgets the oldest subject that runs no try. */
  #forget(): void {
    for (const [subject, { inFlight }] of this.#states) {
      if (inFlight > 0) continue
      this.#states.delete(subject)
      return
    }
  }
}
