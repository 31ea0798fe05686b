/** Events of the limits of keys: a key has used most of a limit, or all of it. What running requests have reserved counts as used. */
import type { ConfigStore } from "../config/ConfigStore.ts"
import type { Notices } from "../config/Notices.ts"
import type { KeyLimit } from "../config/windowLimit.ts"
import { formatDecimal, toUnits } from "../domain/decimal.ts"
import { formatTimestamp } from "../domain/time.ts"
import { exceededBy, type KeyState, type Share, type WindowCount } from "./Admission.ts"

/** The share of a limit from which on its key is warned of. */
const warning = 0.8

/** What a key has used of a limit. */
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

/** A window of a key: one event of a type is sent for each. */
const subjectOf = (key: string, { startedAt, window }: Readonly<WindowCount>): string => `${key} ${window} ${startedAt}`

export class BudgetNotices {
  readonly #notices: Notices
  readonly #config: ConfigStore["Service"]["now"]

  constructor(notices: Notices, config: ConfigStore["Service"]["now"]) {
    this.#notices = notices
    this.#config = config
  }

  /** Whether a webhook wants these events. */
  get isWanted(): boolean {
    return this.#notices.wants("budget.warning") || this.#notices.wants("budget.reached")
  }

  /** Looks at what a key has used after a request. */
  look(key: string, windows: ReadonlyArray<Readonly<WindowCount>>): void {
    if (!this.isWanted) return
    this.#eachUse(key, windows, (limit, count, use) => {
      if (use.share >= warning) this.#publish("budget.warning", key, limit, count, use)
      if (use.share >= 1) this.#publish("budget.reached", key, limit, count, use)
    })
  }

  /** What a key had used when its windows were read: events of it were sent then. */
  known(key: string, windows: ReadonlyArray<Readonly<WindowCount>>): void {
    if (!this.isWanted) return
    this.#eachUse(key, windows, (_, count, { share }) => {
      if (share >= warning) this.#notices.known("budget.warning", subjectOf(key, count), count.resetsAt)
      if (share >= 1) this.#notices.known("budget.reached", subjectOf(key, count), count.resetsAt)
    })
  }

  /** Looks at the limits that leave no room for a request. A request that is larger than a whole limit says nothing about it. */
  refused(key: string, state: KeyState, limits: ReadonlyArray<KeyLimit>, share: Share): void {
    if (!this.#notices.wants("budget.reached")) return
    for (const { kind, window } of exceededBy(state, limits, share)) {
      const limit = limits.find((each) => each.window === window)!
      const count = state.windows.find((each) => each.window === window)!
      const isLarger = kind === "tokens"
        ? share.tokens > limit.tokens!
        : kind === "cost" && share.cost > limit.cost!
      const use = largestUse(limit, count)
      if (!isLarger && use !== undefined) this.#publish("budget.reached", key, limit, count, use)
    }
  }

  #eachUse(
    key: string,
    windows: ReadonlyArray<Readonly<WindowCount>>,
    then: (limit: KeyLimit, count: Readonly<WindowCount>, use: Use) => void
  ): void {
    for (const limit of this.#config().key_records.get(key)?.limits ?? []) {
      const count = windows.find(({ window }) => window === limit.window)
      const use = count && largestUse(limit, count)
      if (use !== undefined) then(limit, count!, use)
    }
  }

  #publish(
    type: "budget.warning" | "budget.reached",
    key: string,
    { window }: KeyLimit,
    count: Readonly<WindowCount>,
    { limit, share, unit, used }: Use
  ): void {
    const name = this.#config().key_records.get(key)?.name ?? null
    const resets_at = formatTimestamp(count.resetsAt)
    const rounded = Math.round(share * 10_000) / 10_000
    const data = { key, name, window, unit, limit, used, share: rounded, resets_at }
    this.#notices.publish(type, subjectOf(key, count), data, count.resetsAt)
  }
}
