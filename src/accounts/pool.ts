/**
 * The account pool apart from its core: leases, tokens, and what operators see are the same over every `PoolCore`. The core
 * decides which request gets which account: `inProcessPool.ts` in this process, `shared/sharedPool.ts` in the store.
 *
 * The one thing to know: every call looks at the configuration in effect, so that a change holds for the next lease immediately.
 * The stream of changes only wakes requests that wait.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Account, findAccount } from "../config/Account.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { CurrentNotices } from "../config/Notices.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { tokenPreview } from "../domain/identity.ts"
import type { Maker } from "../domain/makers.ts"
import { servesModel } from "../domain/routes.ts"
import { monotonicMillis } from "../domain/time.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { MoveCause } from "../domain/warmth.ts"
import type { SlotState } from "../placement/PoolState.ts"
import type { Hindrance } from "../placement/reasons.ts"
import type { Driver } from "../upstream/Upstream.ts"
import { type Drivers, Upstreams } from "../upstream/Upstreams.ts"
import { UsageStore } from "../usage/UsageStore.ts"
import type { AccountHistory } from "../usage/UsageStoreShape.ts"
import { anonymousKey } from "./accountRegistry.ts"
import { AccountWork, noWork } from "./AccountWork.ts"
import type { Fault } from "./backOff.ts"
import { type BudgetFacts, Budgets, budgetUsedUp } from "./budgets.ts"
import type {
  AccountAccess,
  AccountFacts,
  AccountPool,
  AccountsMetrics,
  Caller,
  Lease,
  LeaseTarget,
  PlacementRequest,
  QueueStatus,
  UpstreamFacts
} from "./Lease.ts"
import { AccountCredential, Held, leasedAccount, ownCredential, shownOf } from "./leased.ts"
import { ModelLimits } from "./ModelLimits.ts"
import type { PooledAccount, TestStatus } from "./PooledAccount.ts"
import { Quotas } from "./quota.ts"
import { notAKey } from "./refusals.ts"
import type { AccountTokens, TokensOptions } from "./tokens.ts"
import type { UpstreamActivity } from "./UpstreamActivity.ts"
import { UpstreamTimes } from "./UpstreamTimes.ts"

const hourMillis = 3_600_000

/** Reports what an attempt showed of an account. */
export type Report = Lease["report"]

/** What the core knows of an account. */
export interface AccountState extends Pick<AccountFacts, "inUse" | "disabled" | "recovery"> {
  readonly health: SlotState
  /** Why the account is out of rotation. */
  readonly fault: Fault | "budget" | undefined
  /** Its budgets with what is used of them. */
  readonly budgets: ReadonlyArray<BudgetFacts>
  readonly tested: TestStatus
  readonly token: string | undefined
}

/** What the core adds to the metrics. */
type CoreMetrics = Omit<AccountsMetrics, keyof Counters>

/** Decides which request gets which account, and keeps the state of the accounts. */
export interface PoolCore<T extends AccountTokens> {
  /** Applies the configuration in effect. Costs two comparisons while it and the drivers are unchanged. */
  readonly apply: (drivers: Drivers) => Effect.Effect<void>
  /** A configured account by its key. */
  readonly get: (key: string) => PooledAccount | undefined
  readonly makeTokens: (account: PooledAccount, options: TokensOptions) => T
  /** Receives the end of each login. */
  readonly loginEnded: (account: PooledAccount, exit: Exit.Exit<unknown, UpstreamFailure>) => Effect.Effect<void>
  readonly lease: AccountPool["lease"]
  /** The pools of all upstreams, in the order of the configuration. */
  readonly upstreams: Effect.Effect<ReadonlyArray<UpstreamFacts>>
  /** Prepares the use of an account without a slot; returns what its attempts report to. */
  readonly access: (account: PooledAccount, tokens: T) => Effect.Effect<Report, GatewayError>
  /** The states of accounts, in the order given. */
  readonly statesOf: (accounts: ReadonlyArray<PooledAccount>) => Effect.Effect<ReadonlyArray<AccountState>>
  /** Why an account would not serve one more request now. */
  readonly whyNot: (account: PooledAccount) => MoveCause
  /** Why the pool of an upstream that is enabled grants no slot; `undefined` if it would, or if that is unknown. */
  readonly hindrance: (upstream: string) => Hindrance | undefined
  readonly queue: Effect.Effect<Omit<QueueStatus, "recommended_concurrency" | "oldest_wait_ms" | "upstreams">>
  readonly setTestStatus: (account: PooledAccount, status: "ok" | "failed") => Effect.Effect<void>
  readonly watch: (pool: AccountPool) => AccountPool["watch"]
  readonly metrics: Effect.Effect<CoreMetrics>
}

interface Counters {
  leases: number
  logins: number
  refreshes: number
  loginFailures: number
}

/** What the pool offers its core. */
export interface PoolShell<T extends AccountTokens> {
  /** The drivers in effect; the core has applied the configuration in effect. */
  readonly currentDrivers: Effect.Effect<Drivers>
  /** The driver of an account in effect; `undefined` once its upstream has left the configuration. */
  readonly driverOf: (account: PooledAccount) => Effect.Effect<Driver | undefined>
  /** Runs an effect with the drivers in effect, once the core has applied the configuration in effect. */
  readonly withDrivers: <A, E, R>(then: (drivers: Drivers) => Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
  /** The tokens of an account with a driver, made at the first call. */
  readonly tokensOf: (account: PooledAccount, driver: Driver) => T
  /** The tokens that `tokensOf` has made for an account. */
  readonly madeTokens: (account: PooledAccount) => T | undefined
  /** Starts a lease on an account; `undefined` stands for the caller's own token, which `held` has. */
  readonly leaseOf: (
    account: PooledAccount | undefined,
    model: string | undefined,
    held: Held,
    waited: number,
    report: Report
  ) => Lease
  readonly quotas: Quotas
  readonly budgets: Budgets
  readonly modelLimits: ModelLimits
  /** Keeps what is known of accounts for the next start. */
  readonly history: AccountHistory | undefined
  /** Runs an effect in the background until the pool closes. */
  readonly fork: TokensOptions["fork"]
}

/**
 * The upstreams that may serve a lease, in order of preference: those of its targets, or the first one of the configuration. A caller's own
 * token goes to its upstream alone.
 */
export const upstreamsOf = (
  caller: Caller,
  { targets }: Pick<PlacementRequest, "targets">,
  { auth: { direct_upstream }, upstreams }: GatewayConfig
): ReadonlyArray<string> => {
  if (caller._tag === "Direct" && !caller.isLogin) return direct_upstream === undefined ? [] : [direct_upstream]
  if (targets === undefined) return Array.from(upstreams.keys()).slice(0, 1)
  return targets.length === 1 ? [targets[0]!.upstream] : [...new Set(targets.map(({ upstream }) => upstream))]
}

const factsOf = (account: PooledAccount, state: AccountState, quotas: Quotas): AccountFacts => {
  const { budgets, disabled, fault, health, inUse, recovery, tested, token } = state
  return {
    upstream: account.upstream,
    identifier: account.identifier,
    hash: account.hash,
    inUse,
    health,
    disabled,
    reason: health === "ready" || fault === undefined
      ? undefined
      : fault === "budget"
      ? budgetUsedUp
      : account.reasonFor(fault),
    recovery,
    testStatus: health === "out" ? "failed" : tested,
    work: { ...account.work?.facts() ?? noWork, heldBackSince: account.heldBackSince(health) },
    quota: quotas.windowsOf(account),
    budgets,
    hasToken: token !== undefined,
    tokenPreview: token === undefined ? "" : tokenPreview(token),
    credential: account.credentialFacts
  }
}

/** The pool, and what its upstreams do. */
export interface MadePool {
  readonly pool: AccountPool
  readonly activity: UpstreamActivity["Service"]
}

/** Makes the pool over a core; the scope ends everything that it does in the background. */
export const makePoolOver = Effect.fnUntraced(function*<T extends AccountTokens, R>(
  makeCore: (shell: PoolShell<T>) => Effect.Effect<PoolCore<T>, never, R>
): Effect.fn.Return<MadePool, never, R | ConfigStore | Upstreams | Scope.Scope> {
  const config = yield* ConfigStore
  const upstreams = yield* Upstreams
  const fork = yield* FiberSet.makeRuntime<never, void, never>()
  const clock = yield* Clock.Clock
  const times = new UpstreamTimes(() => monotonicMillis(clock))
  const unixMillis = () => clock.currentTimeMillisUnsafe()
  const workOf = (account: PooledAccount): AccountWork => account.work ??= new AccountWork(unixMillis)
  const notices = yield* CurrentNotices
  const quotas = new Quotas((key) => core.get(key), config.now, unixMillis, notices)
  const history = Option.getOrUndefined(yield* Effect.serviceOption(UsageStore))?.accounts
  const budgets = new Budgets(config.now, unixMillis, history, notices)
  const driverOf = (upstream: string) => applied.get(upstream)
  const modelLimits = new ModelLimits(() => monotonicMillis(clock), driverOf)
  const counters: Counters = { leases: 0, logins: 0, refreshes: 0, loginFailures: 0 }
  const madeTokens = new WeakMap<PooledAccount, T>()

  /** The drivers of the last applied configuration. */
  let applied: Drivers = new Map()

  const withDrivers: PoolShell<T>["withDrivers"] = (then) =>
    Effect.flatMap(upstreams.all, (drivers) =>
      Effect.flatMapEager(core.apply(drivers), () => {
        applied = drivers
        return then(drivers)
      }))
  const currentDrivers = withDrivers(Effect.succeed)
  const driverFor: PoolShell<T>["driverOf"] = (account) =>
    Effect.map(currentDrivers, (drivers) => account.driverIn(drivers))

  const tokensOf = (account: PooledAccount, driver: Driver): T => {
    const known = madeTokens.get(account)
    if (known?.driver === driver) return known
    const made = core.makeTokens(account, {
      driver,
      clock,
      login: account.login,
      source: account.source,
      configured: account.configuredToken,
      refreshAfter: () => config.now().runtime.token_refresh_interval_hours * hourMillis,
      fork,
      ended: (exit, kind) => {
        if (Exit.isFailure(exit)) counters.loginFailures++
        else if (kind === "login") counters.logins++
        else counters.refreshes++
        // The token that is to be renewed serves until its end.
        return kind === "refresh" && account.source !== undefined && Exit.isFailure(exit)
          ? Effect.void
          : core.loginEnded(account, exit)
      }
    })
    account.credential = made.facts
    madeTokens.set(account, made)
    return made
  }

  const leaseOf: PoolShell<T>["leaseOf"] = (account, model, held, waited, report) => {
    counters.leases++
    return {
      upstream: held.upstream,
      model,
      driver: held.driver,
      credential: account === undefined
        ? ownCredential(held)
        : new AccountCredential(account, tokensOf(account, held.driver), held),
      account: account && leasedAccount(account),
      waited,
      report,
      shown: shownOf({ modelLimits, quotas, times }, account, account && workOf(account), held, model),
      registerSession: (sessionId) => {
        held.sessions = [...held.sessions, sessionId]
        return Effect.void
      }
    }
  }

  const core: PoolCore<T> = yield* makeCore({
    currentDrivers,
    driverOf: driverFor,
    withDrivers,
    tokensOf,
    madeTokens: (account) => madeTokens.get(account),
    leaseOf,
    quotas,
    budgets,
    modelLimits,
    history,
    fork
  })

  const accountOf = (identifier: string): PooledAccount | undefined => {
    const account: Account | undefined = findAccount(config.now().account_table, identifier)
    return account === undefined ? undefined : core.get(account.identity[0]!)
  }

  /** The configured account that made something. Takes a look at each account of the configuration. */
  const madeBy = ({ account: hash, upstream }: Pick<Maker, "account" | "upstream">): PooledAccount | undefined => {
    for (const { identity, upstream: of } of config.now().accounts) {
      const account = of === upstream ? core.get(identity[0]!) : undefined
      if (account?.hash === hash) return account
    }
    const anonymous = core.get(anonymousKey(upstream, applied.get(upstream)?.name ?? ""))
    return anonymous?.hash === hash ? anonymous : undefined
  }

  const accessFor = (find: () => PooledAccount | undefined): Effect.Effect<AccountAccess, GatewayError> =>
    Effect.flatMap(currentDrivers, (drivers) => {
      const account = find()
      const driver = account?.driverIn(drivers)
      if (account === undefined || driver === undefined) {
        return Effect.fail(gatewayError("not_found", "No such account is configured"))
      }
      const tokens = tokensOf(account, driver)
      return Effect.map(
        core.access(account, tokens),
        (report): AccountAccess => {
          const { upstream } = account
          const credential = new AccountCredential(account, tokens, new Held(upstream, driver, undefined))
          return { upstream, driver, credential, account: leasedAccount(account), report, renewNow: tokens.renewNow }
        }
      )
    })

  yield* currentDrivers
  yield* Effect.forkScoped(Stream.runForEach(config.changes, () => currentDrivers))

  /** The configuration in effect still has the target. */
  const isServed = ({ model, upstream }: LeaseTarget) => servesModel(config.now().route_table, upstream, model)
  const pool: AccountPool = {
    lease: (caller, request) =>
      caller._tag === "Direct" && !caller.isLogin && config.now().auth.direct_upstream === undefined
        ? Effect.fail(notAKey)
        : core.lease(
          caller,
          request.targets?.every(isServed) === false
            ? { ...request, targets: request.targets.filter(isServed) }
            : request
        ),
    status: Effect.gen(function*() {
      yield* currentDrivers
      const queue = yield* core.queue
      const { route_table, runtime } = config.now()
      const { showsUpstreams } = route_table
      return {
        ...queue,
        recommended_concurrency: showsUpstreams
          ? runtime.recommended_concurrency
          : queue.total * queue.max_inflight_per_account,
        oldest_wait_ms: queue.waiters[0]?.age_ms ?? null,
        ...(showsUpstreams ? { upstreams: (yield* core.upstreams).map(({ budgets: _, ...facts }) => facts) } : {})
      }
    }),
    driverOf,
    whyNot: (last) => {
      const account = madeBy(last)
      if (account === undefined || config.now().upstreams.get(last.upstream)?.enabled !== true) return "disabled"
      return quotas.waitAt(account, last) > 0 ? "quota" : core.whyNot(account)
    },
    hindrance: (target) =>
      config.now().upstreams.get(target.upstream)?.enabled !== true
        ? "disabled"
        : modelLimits.waitFor(target) > 0
        ? "model_paused"
        : core.hindrance(target.upstream),
    access: (account) => accessFor(() => typeof account === "string" ? accountOf(account) : madeBy(account)),
    describe: (identifiers) =>
      Effect.flatMap(currentDrivers, () => {
        const accounts = identifiers.map(accountOf).filter((account) => account !== undefined)
        return Effect.map(
          core.statesOf(accounts),
          (states) => accounts.map((account, i) => factsOf(account, states[i]!, quotas))
        )
      }),
    setTestStatus: (identifier, status, message = "") =>
      Effect.flatMap(currentDrivers, () => {
        const account = accountOf(identifier)
        if (account === undefined) return Effect.void
        workOf(account).tested(status === "ok", message)
        if (status === "ok") quotas.forget(account)
        return core.setTestStatus(account, status)
      }),
    watch: (watch) => core.watch(pool)(watch),
    metrics: Effect.map(Effect.andThen(currentDrivers, core.metrics), (metrics) => ({ ...metrics, ...counters }))
  }
  return {
    pool,
    activity: {
      upstreams: Effect.andThen(currentDrivers, core.upstreams),
      recentTries: Effect.sync(() => times.recent())
    }
  }
})
