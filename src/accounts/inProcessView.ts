/** What operators and metrics see of the pool of one process. */
import type { ConfigStore } from "../config/ConfigStore.ts"
import type { Pools } from "../placement/Pools.ts"
import type { PoolState } from "../placement/PoolState.ts"
import { noLimits } from "../usage/keyRules.ts"
import { type BudgetFacts, type Budgets, budgetUsedUp, upstreamSubject } from "./budgets.ts"
import type { AccountsMetrics, QueueWaiter, UpstreamFacts } from "./Lease.ts"
import type { PooledAccount } from "./PooledAccount.ts"
import type { Outage } from "./refusals.ts"
import type { UpstreamHealthKeeper } from "./upstreamHealth.ts"

/** The queue status shows this many waiters. */
const maxShownWaiters = 50

/** Why the accounts of a pool are out of rotation. */
const reasonOf = (pool: PoolState<PooledAccount>): string | undefined => {
  for (const { account, state } of pool.slots()) {
    const reason = state === "out" && account.fault !== undefined ? account.reasonFor(account.fault) : undefined
    if (reason !== undefined) return reason
  }
  return undefined
}

const factsOf = (
  pool: PoolState<PooledAccount>,
  isEnabled: boolean,
  cooled: ReturnType<UpstreamHealthKeeper["cooled"]>,
  budgets: ReadonlyArray<BudgetFacts>
): UpstreamFacts => {
  const isOut = pool.size > 0 && pool.out === pool.size
  return {
    name: pool.name,
    accounts: {
      ready: pool.size - pool.cooling - pool.out,
      cooling: pool.cooling,
      out: pool.out,
      disabled: pool.disabled
    },
    in_use: pool.inUse,
    max_inflight: pool.limits.global,
    waiting: pool.waiting,
    state: isEnabled ? cooled === undefined ? "ready" : "cooled" : "disabled",
    cooled_ms: cooled === undefined ? null : Math.round(cooled.left),
    reason: cooled?.reason ?? (pool.spent > 0 ? budgetUsedUp : isOut ? reasonOf(pool) : undefined) ?? null,
    budgets
  }
}

/** Makes the view. `now` is the pool's clock, in milliseconds. */
export const makeInProcessView = (
  state: Pools<PooledAccount>,
  health: Pick<UpstreamHealthKeeper, "cooled">,
  config: ConfigStore["Service"],
  now: () => number,
  budgets: Budgets
) => {
  const sum = (count: (pool: PoolState<PooledAccount>) => number): number => {
    let total = 0
    for (const pool of state.configured()) total += count(pool)
    return total
  }

  /** Why no account of some upstreams is in rotation; `undefined` while at least one is. */
  const outage = (names: ReadonlyArray<string>): Outage | undefined => {
    const pools = names.flatMap((name) => state.get(name) ?? []).filter(({ size }) => size > 0)
    if (pools.length === 0 || pools.some(({ out, size }) => out < size)) return undefined
    let reason: string | undefined
    for (const pool of pools) reason ??= reasonOf(pool)
    return { until: Math.min(...pools.map(({ nextRecovery }) => nextRecovery)), reason }
  }

  /** The requests that have waited longest, the longest first. */
  const longestWaiting = (): ReadonlyArray<QueueWaiter> => {
    const shown: Array<QueueWaiter> = []
    for (const { about, pinned, since } of state.queued()) {
      shown.push({ age_ms: Math.round(now() - since), style: about, account: pinned?.account.identifier ?? null })
      if (shown.length === maxShownWaiters) break
    }
    return shown
  }

  return {
    outage,

    /** The pools of all upstreams, in the order of the configuration. */
    upstreams: (): ReadonlyArray<UpstreamFacts> =>
      [...config.now().upstreams.values()].flatMap(({ budgets: limits = noLimits, enabled, name }) => {
        const pool = state.get(name)
        if (pool === undefined) return []
        const facts = budgets.factsOf(upstreamSubject(name), limits)
        return [factsOf(pool, enabled, health.cooled(name), facts)]
      }),

    /** The sum of all pools. */
    queue: () => {
      const upstreams = [...config.now().upstreams.values()]
      const pools = [...state.all()]
      const slots = pools.flatMap((pool) => [...pool.slots()])
      const available = slots.filter((slot) => slot.available)
      const draining = pools.flatMap((pool) => [...pool.draining.values()])
      const inUse = [...slots.filter((slot) => slot.inUse > 0), ...draining]
      return {
        available: available.length,
        in_use: state.inUse,
        total: sum(({ size }) => size),
        available_accounts: available.map(({ account }) => account.identifier),
        in_use_accounts: inUse.map(({ account }) => account.identifier),
        max_inflight_per_account: upstreams[0]?.limits.perAccount ?? 0,
        global_max_inflight: state.limit,
        waiting: state.waiting,
        max_queue_size: sum(({ limits }) => limits.queue),
        cooling: sum(({ cooling }) => cooling),
        out: sum(({ out }) => out),
        disabled: sum(({ disabled }) => disabled),
        failed_tests:
          slots.filter(({ account, enabled, state }) => enabled && state === "ready" && account.tested === "failed")
            .length,
        reason: outage(upstreams.map(({ name }) => name))?.reason ?? null,
        waiters: longestWaiting()
      }
    },

    counts: (): Pick<AccountsMetrics, "inUse" | "waiting" | "accounts"> => ({
      inUse: state.inUse,
      waiting: state.waiting,
      accounts: {
        ready: sum((pool) => pool.size - pool.cooling - pool.out),
        cooling: sum(({ cooling }) => cooling),
        out: sum(({ out }) => out),
        draining: Array.from(state.all()).reduce((total, { draining }) => total + draining.size, 0)
      }
    })
  }
}
