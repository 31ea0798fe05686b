/**
 * What a try uses of the budgets of its account and upstream. It reserves what key limits would (`usage/keyRules.ts`), for its own target, and
 * settles with its own bill.
 */
import type { LeaseBudget } from "../accounts/budgets.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { KeyLimit } from "../config/windowLimit.ts"
import { billOf } from "../domain/bill.ts"
import { GatewayError } from "../domain/GatewayError.ts"
import { withInputImages } from "../domain/inputImages.ts"
import { hasNoNames } from "../domain/nameTable.ts"
import { priceOf } from "../domain/prices.ts"
import type { Route, Target } from "../domain/routes.ts"
import { notCounted, type Share, type Used } from "../usage/Admission.ts"
import { type AdmissionRequest, shareOf } from "../usage/keyRules.ts"
import type { RequestStats } from "./RequestStats.ts"

/** What the request says of what a try may use. */
export type Budgeted = Pick<AdmissionRequest, "bounds" | "promptTokens">

/** A limit of everything. */
const anyLimit: KeyLimit = { window: "month", requests: 1, tokens: 1, cost: 1n, strict: false }

export class TryBudget implements LeaseBudget {
  /** The target that was called; `undefined` until then. */
  target: Target | undefined
  /** The server must heed the limit of output. */
  isStrict = false
  readonly #config: GatewayConfig
  readonly #route: Route
  readonly #stats: RequestStats
  readonly #budgeted: Budgeted
  /** The tries that were charged before. */
  readonly #before: number

  constructor(config: GatewayConfig, route: Route, stats: RequestStats, budgeted: Budgeted) {
    this.#config = config
    this.#route = route
    this.#stats = stats
    this.#budgeted = budgeted
    this.#before = stats.billed?.length ?? 0
  }

  /** What the model stands for at an upstream. */
  #modelAt(upstream: string): Route {
    return { ...this.#route, targets: this.#route.targets.filter((target) => target.upstream === upstream) }
  }

  shareOf(upstream: string, limits: ReadonlyArray<KeyLimit>, now: number): Share | GatewayError {
    return shareOf(this.#config, limits, { ...this.#budgeted, model: this.#modelAt(upstream) }, now)
  }

  sharesOf(upstream: string, now: number): Share {
    const model = this.#modelAt(upstream)
    const ofAny = (strict: boolean) =>
      shareOf(this.#config, [{ ...anyLimit, strict }], { ...this.#budgeted, model }, now)
    const share = ofAny(true)
    return share instanceof GatewayError ? ofAny(false) as Share : share
  }

  used(now: number): Used {
    const { target } = this
    const { answered, billed = [], model: asked, sent, soFar, usage } = this.#stats
    const last = usage ?? (soFar?.isBilled === true ? undefined : soFar?.usage())
    const usages = billed.slice(this.#before).map((each) => each.usage)
    if (last !== undefined) usages.push(last)
    if (target === undefined || (usages.length === 0 && !answered)) return notCounted
    const { currency, prices, upstreams } = this.#config
    const { model: { id }, upstream } = target
    const price = priceOf(prices, now, upstream, id, asked)
    const options = { currency, preferred: upstreams.get(upstream)?.bill, isUnpriced: hasNoNames(prices) }
    let tokens = 0
    let cost = 0n
    for (const each of usages) {
      tokens += each.promptTokens + each.completionTokens
      cost += billOf(price, withInputImages(each, price, sent), options).cost ?? 0n
    }
    return { counted: true, tokens, cost }
  }
}
