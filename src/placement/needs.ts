/**
 * What a request needs of an account beside a slot: room in the budgets of the account and its upstream, and one of its models that the
 * server takes at present. The pool asks it in the step of the grant (`poolQueue.ts`), so that it grants no other account.
 */
import type { Budgets, LeaseBudget, Taken } from "../accounts/budgets.ts"
import type { LeaseTarget, PlacementRequest } from "../accounts/Lease.ts"
import type { ModelLimits } from "../accounts/ModelLimits.ts"
import type { PooledAccount } from "../accounts/PooledAccount.ts"
import type { Quotas } from "../accounts/quota.ts"
import type { KeyLimit } from "../config/windowLimit.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Share } from "../usage/Admission.ts"
import type { Needs } from "./poolQueue.ts"

/** What is known of accounts and models. */
export interface Known {
  readonly budgets: Budgets
  readonly quotas: Quotas
  readonly modelLimits: ModelLimits
  /** Unix milliseconds. */
  readonly unixNow: () => number
  /** The clock of the pool, in milliseconds. */
  readonly now: () => number
  /** A number that no other request of the pool has. Each try with budgets reserves an amount of its own. */
  readonly newNumber: () => number
}

/** Milliseconds for which a model of an account is out; 0 while it may serve. */
export const modelWait = (
  { modelLimits, quotas }: Pick<Known, "modelLimits" | "quotas">,
  account: PooledAccount,
  target: LeaseTarget,
  isBackground: boolean
): number => Math.max(quotas.waitAt(account, target, isBackground), modelLimits.waitFor(target))

/** What needs follow from of a request. */
export type NeedyRequest = Pick<PlacementRequest, "avoid" | "budget" | "failed" | "targets">

/** Whether a target is the one that a request has failed on, while others may serve it. */
export const isFailedTarget = (
  { failed }: Pick<PlacementRequest, "failed">,
  { model, upstream }: LeaseTarget
): boolean => failed?.model === model && failed.upstream === upstream

export class RequestNeeds implements Needs<PooledAccount> {
  readonly id: string
  /** The target that serves the request: the first of the granted account's upstream whose model is taken; `undefined` before the grant. */
  target: LeaseTarget | undefined
  /** What is reserved of budgets, or the error of a try that strict ones cannot bound. */
  reserved: Taken | GatewayError | undefined
  readonly #known: Known
  readonly #asked: NeedyRequest
  readonly #targets: ReadonlyArray<LeaseTarget>
  readonly #isBackground: boolean
  readonly #budget: LeaseBudget | undefined
  /** By lists of limits, as many as the request's upstreams and accounts have. */
  readonly #shares = new Map<ReadonlyArray<KeyLimit>, Share | GatewayError>()

  /** `isBackground`: the request leaves what upstreams reserve for others. */
  constructor(known: Known, asked: NeedyRequest, isBackground: boolean) {
    const { budget, targets = [] } = asked
    this.#known = known
    this.#asked = asked
    this.#targets = targets
    this.#isBackground = isBackground
    this.#budget = budget
    const named = targets.map((target) =>
      `${isFailedTarget(asked, target) ? "!" : ""}${target.upstream}/${target.model}`
    )
    this.id = budget === undefined
      ? `${isBackground ? "background" : ""} ${named.join(" ")}`
      : `budget ${known.newNumber()}`
  }

  /** When an account suits the request, on the clock of the pool; 0 for now, and infinity for one that it has failed on. */
  suitsAt(account: PooledAccount): number {
    const { budgets, now, unixNow } = this.#known
    const budget = this.#budget
    const roomAt = budget === undefined
      ? 0
      : budgets.roomAt(account, (limits, at) => this.#shareOf(budget, account, limits, at))
    const wait = Math.max(this.#modelWait(account), roomAt === 0 ? 0 : roomAt - unixNow())
    return wait === 0 ? 0 : now() + wait
  }

  #modelWait(account: PooledAccount): number {
    let least: number | undefined
    for (const target of this.#targets) {
      if (target.upstream !== account.upstream) continue
      const wait = this.#waitAt(account, target)
      if (least === undefined || wait < least) least = wait
    }
    return least ?? 0
  }

  #waitAt(account: PooledAccount, target: LeaseTarget): number {
    return isFailedTarget(this.#asked, target) && this.#asked.avoid.has(account.key)
      ? Number.POSITIVE_INFINITY
      : modelWait(this.#known, account, target, this.#isBackground)
  }

  #shareOf(budget: LeaseBudget, { upstream }: PooledAccount, limits: ReadonlyArray<KeyLimit>, now: number) {
    const known = this.#shares.get(limits)
    if (known !== undefined) return known
    const share = budget.shareOf(upstream, limits, now)
    this.#shares.set(limits, share)
    return share
  }

  reserve(account: PooledAccount): void {
    const { budgets, quotas } = this.#known
    const own = this.#targets.filter(({ upstream }) => upstream === account.upstream)
    this.target = own.find((target) => this.#waitAt(account, target) === 0) ?? own[0]
    for (const target of own) quotas.tries(account.key, target)
    if (this.#budget !== undefined) this.reserved = budgets.take(account, this.#budget)
  }
}
