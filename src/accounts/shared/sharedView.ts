/** What operators see of the shared pool: the store's view, or the last one received while the store is lost. */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { StoreShape } from "../../cluster/store/Store.ts"
import type { ConfigStore } from "../../config/ConfigStore.ts"
import type { KeyLimit } from "../../config/windowLimit.ts"
import { noLimits } from "../../usage/keyRules.ts"
import { readWindows } from "../../usage/sharedWindows.ts"
import type { Fault } from "../backOff.ts"
import { budgetUsedUp, factsOfBudgets } from "../budgets.ts"
import type { AccountPool, PoolWatch, UpstreamFacts } from "../Lease.ts"
import type { AccountState } from "../pool.ts"
import type { PooledAccount } from "../PooledAccount.ts"
import type { Outage } from "../refusals.ts"
import { reasonOf } from "../upstreamHealth.ts"
import type { Claims } from "./claims.ts"
import {
  asList,
  countOf,
  type PoolStatus,
  readFacts,
  readStatus,
  type SharedFacts,
  type StatusOfPool
} from "./poolScripts.ts"
import { readToken } from "./sharedTokens.ts"

/** Accounts in one call of `facts`. */
const factsPerCall = 500

/** The time between two looks of `pollPool`. */
const pollInterval = "1 second"

/**
 * Makes the view of a node. `accounts` are the configured accounts by their names in the store; `storeNow` is the store's time in Unix
 * milliseconds.
 */
export const makeSharedView = (
  store: StoreShape,
  config: ConfigStore["Service"],
  accounts: () => ReadonlyMap<string, PooledAccount>,
  claims: Claims,
  storeNow: () => number
) => {
  let lastStatus: PoolStatus | undefined

  /** The facts of accounts, by their names in the store. */
  const factsOf = Effect.fnUntraced(function*(names: ReadonlyArray<string>) {
    const facts = new Map<string, SharedFacts>()
    for (let from = 0; from < names.length; from += factsPerCall) {
      const some = JSON.stringify(names.slice(from, from + factsPerCall))
      for (const fact of readFacts(yield* store.run("facts", some))) facts.set(fact.name, fact)
    }
    return facts
  })

  /** Budgets with what the store says is used of them; without its word nothing is. */
  const budgetsIn = (limits: ReadonlyArray<KeyLimit> = noLimits, used: string) =>
    limits.length === 0 ? [] : factsOfBudgets(limits, readWindows(storeNow(), used.split(" ")))

  const stateOf = (account: PooledAccount, facts: SharedFacts | undefined): AccountState => {
    const [, , encrypted = ""] = facts?.token.split(" ") ?? []
    const refused = encrypted === "-"
    const text = encrypted === "" || refused
      ? undefined
      : store.secrets.open(`gw:{main}:token:${facts?.name}`, encrypted)
    const token = text === undefined ? undefined : readToken(text).token
    const state = facts?.state === "cooling" || facts?.state === "out" ? facts.state : "ready"
    return {
      inUse: facts?.inUse ?? 0,
      health: state,
      budgets: budgetsIn(account.account?.budgets, facts?.budgets ?? ""),
      disabled: account.account?.disabled ?? false,
      fault: facts?.isSpent === true && state === "cooling"
        ? "budget"
        : facts !== undefined && facts.fault !== ""
        ? facts.fault as Fault
        : undefined,
      recovery: state === "ready" ? undefined : facts?.left,
      tested: facts?.tested === "ok" || facts?.tested === "failed" ? facts.tested : "",
      token: token ?? (refused ? undefined : account.configuredToken)
    }
  }

  /** The status of the pool; the last one received while the store is lost. */
  const status = (withAccounts: boolean) =>
    Effect.map(Effect.option(store.run("status", withAccounts ? "accounts" : "")), (reply): PoolStatus | undefined => {
      if (reply._tag === "Some") lastStatus = readStatus(reply.value)
      return lastStatus
    })

  /** The configured pools of a status by name. */
  const poolsOf = (seen: PoolStatus): ReadonlyMap<string, StatusOfPool> =>
    new Map(asList(seen.pools).flatMap((pool) => pool.leaving ? [] : [[pool.name, pool]]))

  /**
   * Why no account of some upstreams is in rotation; `undefined` while at least one is. `now` is on the clock of `Outage.until`.
   */
  const outageOf = (
    seen: PoolStatus | undefined,
    upstreams: ReadonlyArray<string>,
    now: number
  ): Effect.Effect<Outage | undefined> =>
    Effect.suspend(() => {
      const pools = seen === undefined ? undefined : poolsOf(seen)
      const withAccounts = upstreams.flatMap((name) => {
        const pool = pools?.get(name)
        return pool === undefined || pool.total === 0 ? [] : [{ name, pool }]
      })
      if (withAccounts.length === 0 || withAccounts.some(({ pool }) => pool.out < pool.total)) {
        return Effect.succeed(undefined)
      }
      const retries = withAccounts.map(({ pool: { retry = Infinity } }) => retry)
      const until = now + Math.min(...retries)
      const names = new Set(withAccounts.map(({ name }) => name))
      const enabled = Array.from(accounts()).find(([, { account, upstream }]) =>
        names.has(upstream) && account?.disabled !== true
      )
      if (enabled === undefined) return Effect.succeed({ until, reason: undefined })
      const [name, account] = enabled
      return Effect.map(Effect.option(factsOf([name])), (facts) => {
        const fault = facts._tag === "Some" ? facts.value.get(name)?.fault ?? "" : ""
        return { until, reason: fault === "" ? undefined : account.reasonFor(fault as Fault) }
      })
    })

  /** As `outageOf`, from the present status. */
  const outage = (upstreams: ReadonlyArray<string>, now: () => number): Effect.Effect<Outage | undefined> =>
    Effect.flatMap(status(false), (seen) => outageOf(seen, upstreams, now()))

  const allNames = () => [...config.now().upstreams.keys()]

  const queueStatus = (seen: PoolStatus | undefined, reason: string | undefined) => {
    const { runtime, upstreams } = config.now()
    const known = accounts()
    const pools = asList(seen?.pools)
    const identifiersOf = (field: "available" | "used") => {
      const named = new Set(pools.flatMap((pool) => asList(pool[field])))
      return Array.from(known).flatMap(([name, account]) => named.has(name) ? [account.identifier] : [])
    }
    return {
      available: known.size === 0 ? 0 : countOf(seen, "spare"),
      in_use: countOf(seen, "in_use", claims.inUse()),
      total: known.size === 0 ? 0 : countOf(seen, "total", known.size),
      available_accounts: identifiersOf("available"),
      in_use_accounts: identifiersOf("used"),
      max_inflight_per_account: [...upstreams.values()][0]?.limits.perAccount ?? runtime.account_max_inflight,
      global_max_inflight: seen?.global ?? runtime.global_max_inflight,
      waiting: seen?.waiting ?? claims.waiting(),
      max_queue_size: seen === undefined
        ? runtime.account_max_queue
        : pools.reduce((places, { leaving, queue }) => places + (leaving ? 0 : queue), 0),
      cooling: countOf(seen, "cooling"),
      out: countOf(seen, "out"),
      disabled: countOf(seen, "disabled"),
      failed_tests: seen?.failed_tests ?? 0,
      reason: reason ?? null,
      waiters: asList(seen?.waiters).map(({ account, age, style }) => ({
        age_ms: Math.round(age),
        style,
        account: account === "" ? null : known.get(account)?.identifier ?? null
      }))
    }
  }

  /** What operators see of the pools, in the order of the configuration. */
  const upstreams: Effect.Effect<ReadonlyArray<UpstreamFacts>> = Effect.gen(function*() {
    const seen = yield* status(false)
    if (seen === undefined) return []
    const pools = poolsOf(seen)
    const facts: Array<UpstreamFacts> = []
    for (const [name, { budgets, enabled }] of config.now().upstreams) {
      const pool = pools.get(name)
      if (pool === undefined) continue
      const { cause, cooled, cooling, disabled, in_use, out, spent, total, used_of_budgets, waiting } = pool
      const reason = cause === undefined ? (yield* outageOf(seen, [name], 0))?.reason : reasonOf(cause)
      facts.push({
        name,
        accounts: { ready: total - cooling - out, cooling, out, disabled },
        in_use,
        max_inflight: pool.global,
        waiting,
        state: enabled ? cooled === undefined ? "ready" : "cooled" : "disabled",
        cooled_ms: cooled === undefined ? null : Math.round(cooled),
        reason: (cause === undefined && spent !== undefined ? budgetUsedUp : reason) ?? null,
        budgets: budgetsIn(budgets, used_of_budgets ?? "")
      })
    }
    return facts
  })

  /** The queue at present. */
  const queue = Effect.flatMap(
    status(true),
    (seen) => Effect.map(outageOf(seen, allNames(), 0), (found) => queueStatus(seen, found?.reason))
  )

  return { factsOf, stateOf, status, outage, queue, upstreams }
}

/** Polls a pool and notifies `watch` of changes until the scope ends: other nodes change the pool without a message. */
export const pollPool = (
  pool: Pick<AccountPool, "status" | "describe">,
  watch: PoolWatch
): Effect.Effect<void, never, Scope.Scope> =>
  Effect.suspend(() => {
    let numbers = ""
    let queue = ""
    /** The accounts in use at the last look, with their facts. */
    let used = new Map<string, string>()
    const look = Effect.gen(function*() {
      const { available_accounts: _, in_use_accounts, oldest_wait_ms: __, upstreams, waiters, ...status } = yield* pool
        .status
      // Times that pass are no change.
      const seen = JSON.stringify([status, upstreams?.map(({ cooled_ms: _cooled, ...facts }) => facts)])
      const waiting = waiters.map(({ account, style }) => `${style} ${account}`).join("\n")
      const facts = yield* pool.describe([...new Set([...used.keys(), ...in_use_accounts])])
      const now = new Map<string, string>()
      for (const { quota: _quota, recovery: _recovery, work: _work, ...fact } of facts) {
        const text = JSON.stringify(fact)
        if (used.get(fact.identifier) !== text) watch.pool(fact.identifier)
        if (fact.inUse > 0) now.set(fact.identifier, text)
      }
      used = now
      if (seen !== numbers) watch.pool(undefined)
      if (waiting !== queue) watch.queue()
      numbers = seen
      queue = waiting
    })
    return Effect.asVoid(Effect.forkScoped(Effect.forever(Effect.andThen(look, Effect.sleep(pollInterval)))))
  })
