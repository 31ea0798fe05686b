/**
 * Events of the limits of keys, and of the budgets of accounts and upstreams: most of a limit is used, or all of it. What running requests
 * have reserved counts as used.
 */
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { Notices } from "../config/Notices.ts"
import type { KeyLimit } from "../config/windowLimit.ts"
import { formatDecimal, toUnits } from "../domain/decimal.ts"
import { formatTimestamp } from "../domain/time.ts"
import { exceededBy, type KeyState, type Share, type WindowCount } from "./Admission.ts"
import { noLimits } from "./keyRules.ts"

/** The share of a limit from which on there is a warning. */
const warning = 0.8

/** A key, an account or an upstream, as its events name it. */
export interface LimitOwner {
  /** Stands for it among all others: the id of a key, the hash of an account, or an upstream's name after `@`. */
  readonly subject: string
  readonly limits: ReadonlyArray<KeyLimit>
  readonly key: string | null
  /** The name of the key. */
  readonly name: string | null
  readonly account: string | null
  /** The operator's note of the account. */
  readonly note: string | null
  readonly upstream: string | null
}

/** The key of an id. */
export const ownerOfKey = ({ key_records }: GatewayConfig, key: string): LimitOwner => {
  const { limits = noLimits, name = null } = key_records.get(key) ?? {}
  return { subject: key, limits, key, name, account: null, note: null, upstream: null }
}

/** How much of a limit is used. */
interface Use {
  readonly unit: "requests" | "tokens" | "cost"
  readonly limit: number | string
  readonly used: number | string
  readonly share: number
}

/** The largest share of what a limit counts. */
const largestUse = ({ cost, requests, tokens }: KeyLimit, count: Readonly<WindowCount>): Use | undefined => {
  const uses: Array<Use> = []
  if (requests !== undefined) {
    uses.push({ unit: "requests", limit: requests, used: count.requests, share: count.requests / requests })
  }
  if (tokens !== undefined) {
    uses.push({ unit: "tokens", limit: tokens, used: count.tokens, share: count.tokens / tokens })
  }
  if (cost !== undefined) {
    const share = toUnits(count.cost) / toUnits(cost)
    uses.push({ unit: "cost", limit: formatDecimal(cost), used: formatDecimal(count.cost), share })
  }
  return uses.reduce<Use | undefined>(
    (most, use) => most === undefined || use.share > most.share ? use : most,
    undefined
  )
}

/** A window of a key, an account or an upstream: one event of a type is sent for each. */
const subjectOf = (subject: string, { startedAt, window }: Readonly<WindowCount>): string =>
  `${subject} ${window} ${startedAt}`

export class BudgetNotices {
  readonly #notices: Notices

  constructor(notices: Notices) {
    this.#notices = notices
  }

  /** Whether a webhook wants these events. */
  get isWanted(): boolean {
    return this.#notices.wants("budget.warning") || this.#notices.wants("budget.reached")
  }

  /** Looks at what is used after a request. */
  look(owner: LimitOwner, windows: ReadonlyArray<Readonly<WindowCount>>): void {
    eachUse(owner.limits, windows, (limit, count, use) => {
      if (use.share >= warning) this.#publish("budget.warning", owner, limit, count, use)
      if (use.share >= 1) this.#publish("budget.reached", owner, limit, count, use)
    })
  }

  /** What was used when the windows were read: events of it were sent then. */
  known(
    { limits, subject }: Pick<LimitOwner, "limits" | "subject">,
    windows: ReadonlyArray<Readonly<WindowCount>>
  ): void {
    eachUse(limits, windows, (_, count, { share }) => {
      if (share >= warning) this.#notices.known("budget.warning", subjectOf(subject, count), count.resetsAt)
      if (share >= 1) this.#notices.known("budget.reached", subjectOf(subject, count), count.resetsAt)
    })
  }

  /** Looks at the limits that leave no room for a request. A request that is larger than a whole limit says nothing about it. */
  refused(owner: LimitOwner, state: KeyState, limits: ReadonlyArray<KeyLimit>, share: Share): void {
    if (!this.#notices.wants("budget.reached")) return
    for (const { kind, window } of exceededBy(state, limits, share)) {
      const limit = limits.find((each) => each.window === window)!
      const count = state.windows.find((each) => each.window === window)!
      const isLarger = kind === "tokens"
        ? share.tokens > limit.tokens!
        : kind === "cost" && share.cost > limit.cost!
      const use = largestUse(limit, count)
      if (!isLarger && use !== undefined) this.#publish("budget.reached", owner, limit, count, use)
    }
  }

  #publish(
    type: "budget.warning" | "budget.reached",
    { account, key, name, note, subject, upstream }: LimitOwner,
    { window }: KeyLimit,
    count: Readonly<WindowCount>,
    { limit, share, unit, used }: Use
  ): void {
    const resets_at = formatTimestamp(count.resetsAt)
    const rounded = Math.round(share * 10_000) / 10_000
    const data = { key, name, account, note, upstream, window, unit, limit, used, share: rounded, resets_at }
    this.#notices.publish(type, subjectOf(subject, count), data, count.resetsAt)
  }
}

const eachUse = (
  limits: ReadonlyArray<KeyLimit>,
  windows: ReadonlyArray<Readonly<WindowCount>>,
  then: (limit: KeyLimit, count: Readonly<WindowCount>, use: Use) => void
): void => {
  for (const limit of limits) {
    const count = windows.find(({ window }) => window === limit.window)
    const use = count && largestUse(limit, count)
    if (use !== undefined) then(limit, count!, use)
  }
}
