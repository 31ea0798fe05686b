/** The pool of one process: `Pools` driven by requests, time, the configuration and what the upstreams show of accounts. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { accountsNamed } from "../config/Account.ts"
import { CurrentShutdown } from "../config/clock/Shutdown.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import { CurrentNotices } from "../config/Notices.ts"
import { GatewayError } from "../domain/GatewayError.ts"
import { isOfMaker } from "../domain/makers.ts"
import { servesModel } from "../domain/routes.ts"
import { type Cooperative, eachCooperatively } from "../domain/stream/cooperative.ts"
import { monotonicMillis } from "../domain/time.ts"
import { RequestNeeds } from "../placement/needs.ts"
import { never } from "../placement/poolQueue.ts"
import { type PoolConfig, Pools } from "../placement/Pools.ts"
import type { LeaseRequest, PoolChanges, Refusal, Slot, Waiter } from "../placement/PoolState.ts"
import type { Driver } from "../upstream/Upstream.ts"
import type { Drivers, Upstreams } from "../upstream/Upstreams.ts"
import { noLimits } from "../usage/keyRules.ts"
import { type AccountHealthKeeper, makeAccountHealth, moveCauseOf, publishBack } from "./accountHealth.ts"
import { type AccountsByKey, makeAccountRegistry } from "./accountRegistry.ts"
import { suspensionFor } from "./backOff.ts"
import { hasBudgets } from "./budgets.ts"
import { makeInProcessView } from "./inProcessView.ts"
import type { Caller, Lease, LeaseTarget, PlacementRequest, PoolWatch, Preference } from "./Lease.ts"
import { type Held, heldBy } from "./leased.ts"
import { type MadePool, makePoolOver, type PoolCore, type PoolShell, type Report, upstreamsOf } from "./pool.ts"
import type { PooledAccount } from "./PooledAccount.ts"
import { ambiguousAccount, disabledUpstreams, otherUpstream, overBudget, refusalError } from "./refusals.ts"
import { makeSessionCleanUp } from "./sessionCleanUp.ts"
import { type Answered, preferring, StickyConversations } from "./sticky.ts"
import { type AccountTokens, makeTokens } from "./tokens.ts"
import { makeUpstreamHealth, type ReportedTry } from "./upstreamHealth.ts"

type AccountSlot = Slot<PooledAccount>
type AccountWaiter = Waiter<PooledAccount>

const noReport: Report = () => Effect.void

/** What the order of an upstream's accounts depends on. */
const rankOf = ({ account }: PooledAccount) => ({ priority: account?.priority ?? 0, weight: account?.weight ?? 1 })

/** Reports what an attempt showed of the upstream: a failure of the account says nothing about it. */
const reportUpstream = (
  attempt: ReportedTry,
  ...[verdict, retryAfter, fault]: Parameters<Report>
): Effect.Effect<void> =>
  verdict !== undefined && fault === undefined
    ? Effect.void
    : attempt.report(fault, fault === undefined ? undefined : retryAfter)

/** A request that waits, and what may serve it. */
interface Waiting {
  readonly waiter: AccountWaiter
  readonly targets: ReadonlyArray<LeaseTarget>
}

const makeInProcessCore = Effect.fnUntraced(function*(
  shell: PoolShell<AccountTokens>
): Effect.fn.Return<PoolCore<AccountTokens>, never, ConfigStore | Upstreams | Scope.Scope> {
  const config = yield* ConfigStore
  const shutdown = yield* CurrentShutdown
  const clock = yield* Clock.Clock
  const notices = yield* CurrentNotices
  const now = () => monotonicMillis(clock)
  const state = new Pools<PooledAccount>()
  const { currentDrivers } = shell
  const conversations = new StickyConversations(now)
  /** The requests that wait for models of upstreams. */
  const waiting = new Set<Waiting>()

  const watches = new Set<PoolWatch>()
  /** Attached to the state only while there are watches. */
  const changes: PoolChanges<PooledAccount> = {
    slot(slot) {
      for (const { pool } of watches) pool(slot?.account.identifier)
    },
    queue() {
      for (const { queue } of watches) queue()
    }
  }

  const poolOf = ({ account }: AccountSlot) => state.get(account.upstream)
  /** Until when the server limits the rate of an account, in Unix milliseconds; 0 without a pause. */
  const pausedUntil = (account: PooledAccount): number => {
    const slot = slotOf(account)
    return slot === undefined || slot.health !== "cooling" || account.fault !== "rate_limited"
      ? 0
      : Math.ceil(Math.max(slot.healthUntil, slot.stated) - now() + clock.currentTimeMillisUnsafe())
  }
  /** Keeps what is known of an account for the next start. */
  const keep = (account: PooledAccount) =>
    shell.history?.changed(account.hash, () => ({
      pausedUntil: pausedUntil(account),
      windows: account.quota?.list() ?? []
    }))
  /** What was kept of accounts; until the pool is configured first. */
  let kept = yield* shell.history?.states(clock.currentTimeMillisUnsafe()) ?? Effect.undefined
  const restore = (slot: AccountSlot) => {
    const { account } = slot
    const state = kept?.get(account.hash)
    if (state === undefined) return
    shell.quotas.restored(account, state.windows)
    const left = state.pausedUntil - clock.currentTimeMillisUnsafe()
    if (left <= 0) return
    account.failed("rate_limited")
    const { delay, stated } = suspensionFor("rate_limited", 1, left / 1_000, 0)
    poolOf(slot)?.suspend(slot, "cooling", now() + delay, now() + stated)
  }

  shell.quotas.changed = (account) => {
    const slot = slotOf(account)
    const pool = slot && poolOf(slot)
    pool?.setReset(slot!, account.quota?.reset)
    pool?.reconsider(slot)
    keep(account)
  }
  const health: AccountHealthKeeper = yield* makeAccountHealth(
    {
      recover: (at) => state.recover(at),
      nextRecovery: () => state.nextRecovery,
      restore: (slot) => {
        poolOf(slot)?.restore(slot)
        // At its budget it returns later.
        if (slot.state === "cooling") health.wake()
      },
      suspend: (slot, is, until, stated) => poolOf(slot)?.suspend(slot, is, until, stated)
    },
    ({ account }) =>
      Effect.flatMap(
        shell.driverOf(account),
        (driver) => driver === undefined ? Effect.void : shell.tokensOf(account, driver).probe
      )
  )

  /** Takes an account and its upstream out of rotation while a budget of theirs is used up, or back into it. */
  const spend = (account: PooledAccount) => {
    const slot = slotOf(account)
    const pool = state.get(account.upstream)
    if (pool === undefined) return
    const [own, ofUpstream] = shell.budgets.spentOf(account)
    const ahead = now() - clock.currentTimeMillisUnsafe()
    // The last lease of an account that has left ends as well.
    if (slot !== undefined) pool.spend(slot, own === 0 ? 0 : own + ahead)
    pool.spendAll(ofUpstream === 0 ? 0 : ofUpstream + ahead)
    pool.reconsider(config.now().upstreams.get(account.upstream)?.budgets === undefined ? slot : undefined)
    if (own > 0 || ofUpstream > 0) health.wake()
  }
  shell.budgets.changed = spend
  state.due = () => health.wake()
  let hadBudgets = false

  const upstreams = yield* makeUpstreamHealth(clock, (name, skipped) => state.skip(name, skipped))
  const view = makeInProcessView(state, upstreams, config, now, shell.budgets)
  const cleanUp = yield* makeSessionCleanUp(
    (slot, isCleaning) => poolOf(slot)?.setCleaning(slot, isCleaning),
    () => config.now().auto_delete.mode
  )

  function* configure(accounts: AccountsByKey, next: GatewayConfig): Cooperative<void> {
    const { auth: { direct_max_inflight, direct_upstream }, route_table, runtime } = next
    const pools = new Map<string, PoolConfig<PooledAccount> & { accounts: Map<string, PooledAccount> }>()
    const disabled = new Set<string>()
    for (const [name, { choose = "rotate", credential, enabled, limits }] of next.upstreams) {
      const direct = name === direct_upstream || credential !== "account" ? direct_max_inflight : 0
      const choice = { choose, of: rankOf }
      pools.set(name, { accounts: new Map(), limits: { ...limits, direct }, disabled, enabled, choice })
    }
    yield* eachCooperatively(accounts, ([key, account]) => {
      if (account.account?.disabled === true) disabled.add(key)
      pools.get(account.upstream)?.accounts.set(key, account)
    })
    yield* state.configure(pools, runtime.global_max_inflight)
    const spends = hadBudgets || hasBudgets(next)
    hadBudgets = hasBudgets(next)
    for (const pool of state.configured()) {
      // A renewed account has no fault, whatever its slot's state was.
      yield* eachCooperatively(pool.slots(), (slot) => {
        if (slot.state !== "ready" && slot.account.fault === undefined) {
          if (slot.state === "out") publishBack(notices, slot.account)
          pool.restore(slot)
        }
        if (kept !== undefined && kept.size > 0) restore(slot)
        pool.setReset(slot, slot.account.quota?.reset)
        if (spends) spend(slot.account)
      })
    }
    kept = undefined
    // What is behind a name is as configured now: a target without its model gives up its place.
    for (const { targets, waiter } of waiting) {
      for (const { upstream } of targets) {
        const isServed = targets.some((target) =>
          target.upstream === upstream && servesModel(route_table, upstream, target.model)
        )
        if (!isServed) state.drop(waiter, upstream)
      }
    }
    health.wake()
  }
  const registry = makeAccountRegistry(configure)

  /** The slot of an account; `undefined` once the account is renewed or has left the configuration. */
  const slotOf = (account: PooledAccount): AccountSlot | undefined => {
    const slot = state.get(account.upstream)?.get(account.key)
    return slot?.account === account ? slot : undefined
  }

  const reportTo = (
    slot: AccountSlot,
    driver: Driver,
    attempt: ReportedTry | undefined,
    answered: () => void
  ): Report => {
    const { account } = slot
    const { epoch } = account
    const tokens = shell.tokensOf(account, driver)
    return (verdict, retryAfter, fault) => {
      if (verdict === undefined) answered()
      const ofAccount = slot.account === account && shell.madeTokens(account) === tokens
        ? health.report(slot, verdict, retryAfter, account.epoch === epoch)
        : Effect.void
      const isPause = verdict === "rate_limited" || (verdict === undefined && slot.state === "cooling")
      const noted = isPause ? Effect.tap(ofAccount, () => Effect.sync(() => keep(account))) : ofAccount
      return attempt === undefined
        ? noted
        : Effect.flatMapEager(noted, () => reportUpstream(attempt, verdict, retryAfter, fault))
    }
  }

  const requestOf = (
    caller: Caller,
    { avoid, stay }: PlacementRequest,
    pools: ReadonlyArray<string>,
    needs: RequestNeeds | undefined
  ) => {
    if (caller._tag === "Direct") return { request: { _tag: "Direct" } as LeaseRequest, pools }
    if (caller.target !== undefined) {
      const [account, ...others] = accountsNamed(config.now().account_table, caller.target)
      if (others.length > 0) return undefined
      const request: LeaseRequest = { _tag: "Pinned", key: account?.identity[0] ?? "" }
      return { request, pools: account === undefined ? pools : [account.upstream] }
    }
    const staying = stay === undefined ? undefined : pools.find((name) => {
      const slot = state.get(name)?.get(stay)
      return slot?.state === "ready" && needs?.suitsAt(slot.account) === 0
    })
    return staying === undefined
      ? { request: { _tag: "Any", avoid } as LeaseRequest, pools }
      : { request: { _tag: "Pinned", key: stay! } as LeaseRequest, pools: [staying] }
  }

  let numbers = 0
  const known = {
    newNumber: () => ++numbers,
    budgets: shell.budgets,
    quotas: shell.quotas,
    modelLimits: shell.modelLimits,
    unixNow: () => clock.currentTimeMillisUnsafe(),
    now
  }
  /** What a request needs of an account. A caller's own token needs none. */
  const needsOf = (caller: Caller, asked: PlacementRequest): RequestNeeds | undefined =>
    caller._tag === "Direct"
      ? undefined
      : new RequestNeeds(
        known,
        hadBudgets ? asked : { ...asked, budget: undefined },
        shell.quotas.isBackground(caller.key)
      )

  /** The free account that a request prefers; of an organisation the one that answered the session last, then the one that sealed. */
  const preferredOf = (
    { avoid, prefers, targets }: PlacementRequest,
    needs: RequestNeeds | undefined,
    last: string | undefined
  ): (Answered & Pick<Preference, "prefersTarget">) | undefined => {
    for (const { isAccount, maker, prefersTarget } of prefers) {
      const { upstream } = maker
      if (targets?.some((target) => target.upstream === upstream) === false) continue
      const account = state.get(upstream)?.bestFree(({ account, key }) => {
        if (avoid.has(key) || (needs !== undefined && needs.suitsAt(account) > 0)) return undefined
        if (account.hash === maker.account) return key === last ? 0 : 1
        const { hash, organization } = account
        if (isAccount || !isOfMaker(maker, { upstream, account: hash, organization })) return undefined
        return key === last ? 0 : 2
      })
      if (account !== undefined) return { upstream, account, prefersTarget }
    }
    return undefined
  }

  /** Waits until the queue has served a waiter. A wait that ends in any other way leaves nothing behind. */
  const served = (
    waiter: AccountWaiter,
    outcome: Deferred.Deferred<void, Refusal>,
    patience: number,
    { targets, wait }: PlacementRequest
  ) => {
    const close = () => Deferred.doneUnsafe(outcome, Exit.fail({ _tag: "Closing" }))
    const unwatch = shutdown.watch(close)
    if (shutdown.isOver) close()
    const named: Waiting | undefined = targets && { waiter, targets }
    if (named !== undefined) waiting.add(named)
    const arrival = Deferred.await(outcome)
    // The hold at the first target ends while the request goes on waiting.
    const widened = wait > 0 && wait < patience
      ? Effect.timeoutOrElse(arrival, {
        duration: wait,
        orElse: () => Effect.andThen(Effect.sync(() => state.widen(waiter)), arrival)
      })
      : arrival
    return Effect.timeoutOrElse(widened, {
      duration: patience,
      orElse: () => Effect.fail(state.late(waiter))
    }).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          unwatch()
          if (named !== undefined) waiting.delete(named)
          if (Exit.isFailure(exit)) state.close(waiter)
        })
      ),
      Effect.as(waiter)
    )
  }

  /** Claims a slot: immediately if one is free, else when the queue has served the waiter. */
  const claim = (
    { pools, request }: { readonly request: LeaseRequest; readonly pools: ReadonlyArray<string> },
    hold: (waiter: AccountWaiter) => void,
    options: PlacementRequest,
    preferred: string | undefined,
    needs: RequestNeeds | undefined
  ): Effect.Effect<AccountWaiter, Refusal> => {
    const { patience = config.now().request_timeouts.queue * 1_000, spread, style, wait } = options
    const outcome = Deferred.makeUnsafe<void, Refusal>()
    const waiter = state.request(
      { pools, request, now: now(), patience, about: style, spread, hold: wait > 0, preferred, needs },
      (refusal) => {
        Deferred.doneUnsafe(outcome, refusal === undefined ? Exit.void : Exit.fail(refusal))
      }
    )
    if ("_tag" in waiter) return Effect.fail(waiter)
    hold(waiter)
    if (waiter.state === "granted") {
      // The request tries an account that returns for it alone.
      if (waiter.slot?.state === "cooling") health.wake()
      return Effect.succeed(waiter)
    }
    if (patience <= 0) {
      state.close(waiter)
      return Effect.fail({ _tag: "Late" })
    }
    return served(waiter, outcome, patience, options)
  }

  const release = (waiter: AccountWaiter, held: Held | undefined) => {
    state.close(waiter)
    if (held !== undefined && (held.sessions.length > 0 || waiter.slot?.account.unclean !== undefined)) {
      cleanUp.released(waiter.slot, held)
    }
  }

  const lease = (
    caller: Caller,
    asked: PlacementRequest,
    scope: Scope.Scope,
    firstDrivers: Drivers
  ): Effect.Effect<Lease, GatewayError> => {
    const { sticky } = asked
    const last = sticky === undefined ? undefined : conversations.lastOf(sticky)
    const needs = needsOf(caller, asked)
    const preferred = preferredOf(asked, needs, last?.account)
    const options = preferred !== undefined
      ? preferring(asked, preferred, preferred.prefersTarget)
      : last === undefined
      ? asked
      : preferring(asked, last)
    const firstChoice = (preferred ?? last)?.account
    const pools = upstreamsOf(caller, options, config.now())
    const began = now()
    let attempt: ReportedTry | undefined
    let hasWaited = false
    let waiter: AccountWaiter | undefined
    let held: Held | undefined
    const hold = (claimed: AccountWaiter) => {
      waiter = claimed
      hasWaited ||= claimed.state !== "granted"
    }
    /** A caller's own token is for the first model of its upstream. */
    const modelAt = (needs: RequestNeeds | undefined, name: string) =>
      needs === undefined ? options.targets?.find(({ upstream }) => upstream === name)?.model : needs.target?.model
    const granted = ({ granted: pool, slot }: AccountWaiter): Effect.Effect<Lease, GatewayError> => {
      const name = pool?.name ?? pools[0] ?? ""
      const begun = upstreams.begin(name, options.request)
      attempt = begun
      const leaseOn = (drivers: Drivers): Effect.Effect<Lease, GatewayError> => {
        const driver = slot === undefined ? drivers.get(name) : slot.account.driverIn(drivers)
        if (driver === undefined) return Effect.fail(refusalError({ _tag: "Unavailable" }, now()))
        if (needs?.reserved instanceof GatewayError) return Effect.fail(needs.reserved)
        held = heldBy(caller, name, driver)
        const report = slot === undefined
          ? (...of: Parameters<Report>) => reportUpstream(begun, ...of)
          : reportTo(slot, driver, begun, () => {
            if (sticky !== undefined) conversations.answered(sticky, { upstream: name, account: slot.key }, last)
          })
        return Effect.succeed(shell.leaseOf(slot?.account, modelAt(needs, name), held, now() - began, report))
      }
      // Another upstream may have been configured during a wait.
      if (slot?.account.cleanUp !== undefined) {
        return Effect.flatMap(cleanUp.awaitDeletion(slot.account), () => Effect.flatMap(currentDrivers, leaseOn))
      }
      return Effect.flatMapEager(hasWaited ? currentDrivers : Effect.succeed(firstDrivers), leaseOn)
    }
    // The finalizer is added before there is a slot, so that no interruption can lose one.
    const giveBack = Effect.sync(() => {
      const taken = needs?.reserved
      if (taken !== undefined && "settle" in taken) taken.settle(options.budget!.used(clock.currentTimeMillisUnsafe()))
      if (waiter !== undefined) release(waiter, held)
      attempt?.ended()
    })
    return Effect.flatMap(Scope.addFinalizer(scope, giveBack), () => {
      // The finalizer has run already.
      if (scope.state._tag === "Closed") return Effect.interrupt
      const found = requestOf(caller, options, pools, needs)
      if (found === undefined) return Effect.fail(ambiguousAccount(config.now().account_table, caller))
      const { request } = found
      if (request._tag === "Pinned" && request.key !== "" && !pools.includes(found.pools[0]!)) {
        return Effect.fail(otherUpstream(found.pools[0]!, pools, options.model))
      }
      const first = claim(found, hold, options, firstChoice, needs)
      // Staying on an account is a preference, unlike a pin.
      const isPreference = request._tag === "Pinned" && caller._tag === "Managed" && caller.target === undefined
      const anyOther = () => {
        const { avoid, patience = config.now().request_timeouts.queue * 1_000 } = options
        const left = Math.max(0, patience - (now() - began))
        return claim(
          { request: { _tag: "Any", avoid }, pools },
          hold,
          { ...options, patience: left },
          firstChoice,
          needs
        )
      }
      const claimed = isPreference ? Effect.catchIf(first, (refusal) => refusal._tag !== "Late", anyOther) : first
      return Effect.flatMapEager(
        Effect.mapErrorEager(claimed, (refusal) => {
          const disabled = refusal._tag === "Unavailable"
            ? disabledUpstreams(config.now().upstreams, pools, options.model)
            : undefined
          if (refusal._tag === "Cooling" && options.budget !== undefined && hadBudgets) {
            return overBudget(((refusal.until < never ? refusal.until : refusal.until - never) - now()) / 1_000)
          }
          return disabled ?? refusalError(refusal, now(), view.outage(pools), now() - began)
        }),
        granted
      )
    })
  }

  return {
    apply: (drivers) => {
      upstreams.configure(drivers)
      return registry.apply(config.now, drivers)
    },
    get: registry.get,
    makeTokens: (_, options) => makeTokens(options),
    loginEnded: (account, exit) => {
      const slot = slotOf(account)
      if (slot === undefined) return Effect.void
      if (Exit.isFailure(exit)) return health.loginFailed(slot, exit.cause)
      changes.slot(slot)
      return Effect.void
    },
    lease: (caller, options) =>
      Effect.withFiber((fiber) =>
        shell.withDrivers((drivers) => lease(caller, options, Context.getUnsafe(fiber.context, Scope.Scope), drivers))
      ),
    upstreams: Effect.sync(view.upstreams),
    access: (account, { driver }) =>
      Effect.sync(() => {
        const slot = slotOf(account)
        return slot === undefined ? noReport : reportTo(slot, driver, undefined, () => undefined)
      }),
    statesOf: (accounts) =>
      Effect.sync(() =>
        accounts.map((account) => {
          const slot = state.get(account.upstream)?.get(account.key)
          const { enabled = true, inUse = 0, state: is = "ready", until = 0 } = slot ?? {}
          const tokens = shell.madeTokens(account)
          return {
            health: is,
            inUse,
            disabled: !enabled,
            fault: slot !== undefined && slot.spent > 0 && slot.spent >= until ? "budget" : account.fault,
            budgets: shell.budgets.factsOf(account.hash, account.account?.budgets ?? noLimits),
            recovery: is === "ready" || !Number.isFinite(until) ? undefined : Math.max(0, until - now()),
            tested: account.tested,
            token: tokens === undefined ? account.configuredToken : tokens.held()
          }
        })
      ),
    whyNot: (account) => {
      const slot = slotOf(account)
      if (slot === undefined || !slot.enabled) return "disabled"
      const [own, ofUpstream] = shell.budgets.spentOf(account)
      if (own > 0 || ofUpstream > 0) return "budget"
      if (slot.state !== "ready") return moveCauseOf(account.fault)
      return slot.available ? "priority" : "full"
    },
    hindrance: (upstream) => {
      const pool = state.get(upstream)
      if (pool === undefined || pool.size === 0) return "no_account"
      if (upstreams.cooled(upstream) !== undefined) return "cooling"
      if (pool.spent > 0) return "over_budget"
      if (pool.cooling + pool.out === pool.size) return "no_account"
      return pool.available > 0 && pool.inUse < pool.limits.global ? undefined : "full"
    },
    queue: Effect.sync(view.queue),
    setTestStatus: (account, status) =>
      Effect.suspend(() => {
        account.tested = status
        const slot = slotOf(account)
        if (slot === undefined) return Effect.void
        changes.slot(slot)
        return status === "ok" ? health.report(slot, undefined, undefined, true) : Effect.void
      }),
    watch: () => (watch) =>
      Effect.asVoid(Effect.acquireRelease(
        Effect.sync(() => {
          watches.add(watch)
          state.changes = changes
        }),
        () =>
          Effect.sync(() => {
            watches.delete(watch)
            if (watches.size === 0) state.changes = undefined
          })
      )),
    metrics: Effect.sync(() => ({
      ...view.counts(),
      stickyHits: conversations.counts().hits,
      stickyMoves: conversations.counts().moves,
      ...cleanUp.counts()
    }))
  }
})

/** Makes the pool; the scope ends everything that it does in the background. */
export const makePool: Effect.Effect<MadePool, never, ConfigStore | Upstreams | Scope.Scope> = makePoolOver(
  makeInProcessCore
)
