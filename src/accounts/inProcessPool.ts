/** The pool of one process: `PoolState` driven by requests, time, the configuration and what the upstream shows of accounts. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { findAccount } from "../config/Account.ts"
import { CurrentShutdown } from "../config/clock/Shutdown.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import type { GatewayConfig } from "../config/GatewayConfig.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { type Cooperative, eachCooperatively } from "../domain/stream/cooperative.ts"
import { monotonicMillis } from "../domain/time.ts"
import { type Driver, Upstream } from "../upstream/Upstream.ts"
import { type AccountHealthKeeper, makeAccountHealth } from "./accountHealth.ts"
import { type AccountsByKey, makeAccountRegistry } from "./accountRegistry.ts"
import type { AccountPool, Caller, Lease, LeaseOptions, PoolWatch, QueueWaiter } from "./Lease.ts"
import { type Held, heldBy, makePoolOver, type PoolCore, type PoolShell, type Report } from "./pool.ts"
import type { PooledAccount } from "./PooledAccount.ts"
import { type LeaseRequest, type PoolChanges, PoolState, type Refusal, type Slot, type Waiter } from "./PoolState.ts"
import { type Outage, refusalError } from "./refusals.ts"
import { makeSessionCleanUp } from "./sessionCleanUp.ts"
import { type AccountTokens, makeTokens } from "./tokens.ts"

type AccountSlot = Slot<PooledAccount>
type AccountWaiter = Waiter<PooledAccount>

/** The queue status shows this many waiters. */
const maxShownWaiters = 50

const avoidNothing: ReadonlySet<string> = new Set()
const noReport: Report = () => Effect.void

const makeInProcessCore = Effect.fnUntraced(function*(
  shell: PoolShell<AccountTokens>
): Effect.fn.Return<PoolCore<AccountTokens>, never, ConfigStore | Upstream | Scope.Scope> {
  const config = yield* ConfigStore
  const upstream = yield* Upstream
  const shutdown = yield* CurrentShutdown
  const clock = yield* Clock.Clock
  const now = () => monotonicMillis(clock)
  const state = new PoolState<PooledAccount>({ perAccount: 1, global: 1, queue: 0, direct: 1 })
  const { currentDriver } = shell

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

  const health: AccountHealthKeeper = yield* makeAccountHealth(
    state,
    ({ account }) => Effect.flatMap(currentDriver, (driver) => shell.tokensOf(account, driver).probe)
  )
  const cleanUp = yield* makeSessionCleanUp(state, () => config.now().auto_delete.mode)

  function* configure(
    accounts: AccountsByKey,
    { auth: { direct_max_inflight }, runtime }: GatewayConfig
  ): Cooperative<void> {
    const disabled = new Set<string>()
    yield* eachCooperatively(accounts, ([key, { account }]) => {
      if (account?.disabled === true) disabled.add(key)
    })
    const limits = {
      perAccount: runtime.account_max_inflight,
      global: runtime.global_max_inflight,
      queue: runtime.account_max_queue,
      direct: direct_max_inflight
    }
    yield* state.configure(accounts, limits, disabled)
    // A renewed account has no fault, whatever its slot's state was.
    yield* eachCooperatively(state.slots(), (slot) => {
      if (slot.state !== "ready" && slot.account.fault === undefined) state.restore(slot)
    })
    health.wake()
  }
  const registry = makeAccountRegistry(configure)

  /** The slot of an account; `undefined` once the account is renewed or has left the configuration. */
  const slotOf = (account: PooledAccount): AccountSlot | undefined => {
    const slot = state.get(account.key)
    return slot?.account === account ? slot : undefined
  }

  const reportTo = (slot: AccountSlot, driver: Driver): Report => {
    const { account } = slot
    const { epoch } = account
    const tokens = shell.tokensOf(account, driver)
    return (verdict, retryAfter) =>
      slot.account === account && shell.madeTokens(account) === tokens
        ? health.report(slot, verdict, retryAfter, account.epoch === epoch)
        : Effect.void
  }

  const requestOf = (caller: Caller, { avoid = avoidNothing, stay }: LeaseOptions): LeaseRequest => {
    if (caller._tag === "Direct") return { _tag: "Direct" }
    if (caller.target !== undefined) {
      const account = findAccount(config.now().account_table, caller.target)
      return { _tag: "Pinned", key: account?.identity[0] ?? "" }
    }
    return stay !== undefined && state.get(stay)?.state === "ready"
      ? { _tag: "Pinned", key: stay }
      : { _tag: "Any", avoid }
  }

  /** Waits until the queue has served a waiter. A wait that ends in any other way leaves nothing behind. */
  const served = (waiter: AccountWaiter, outcome: Deferred.Deferred<void, Refusal>, patience: number) => {
    const close = () => Deferred.doneUnsafe(outcome, Exit.fail({ _tag: "Closing" }))
    const unwatch = shutdown.watch(close)
    if (shutdown.isOver) close()
    return Effect.timeoutOrElse(Deferred.await(outcome), {
      duration: patience,
      orElse: () => Effect.fail(state.late(waiter))
    }).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          unwatch()
          if (Exit.isFailure(exit)) state.close(waiter)
        })
      ),
      Effect.as(waiter)
    )
  }

  /** Claims a slot: at once if one is free, else when the queue has served the waiter. */
  const claim = (
    request: LeaseRequest,
    hold: (waiter: AccountWaiter) => void,
    about: string | undefined
  ): Effect.Effect<AccountWaiter, Refusal> => {
    const patience = config.now().upstream.timeouts.queue * 1_000
    const outcome = Deferred.makeUnsafe<void, Refusal>()
    const waiter = state.request(request, now(), patience, (refusal) => {
      Deferred.doneUnsafe(outcome, refusal === undefined ? Exit.void : Exit.fail(refusal))
    }, about)
    if ("_tag" in waiter) return Effect.fail(waiter)
    hold(waiter)
    if (waiter.state === "granted") return Effect.succeed(waiter)
    return served(waiter, outcome, patience)
  }

  const release = (waiter: AccountWaiter, held: Held | undefined) => {
    state.close(waiter)
    if (held !== undefined && (held.sessions.length > 0 || waiter.slot?.account.unclean !== undefined)) {
      cleanUp.released(waiter.slot, held)
    }
  }

  const lease = (
    caller: Caller,
    options: LeaseOptions,
    scope: Scope.Scope,
    firstDriver: Driver
  ): Effect.Effect<Lease, GatewayError> => {
    const began = now()
    let hasWaited = false
    let waiter: AccountWaiter | undefined
    let held: Held | undefined
    const hold = (claimed: AccountWaiter) => {
      waiter = claimed
      hasWaited ||= claimed.state !== "granted"
    }
    const granted = ({ slot }: AccountWaiter): Effect.Effect<Lease> => {
      const leaseOn = (driver: Driver): Lease => {
        held = heldBy(caller, driver)
        return shell.leaseOf(slot?.account, held, now() - began, slot === undefined ? noReport : reportTo(slot, driver))
      }
      // Another upstream may have been configured during a wait.
      if (slot?.account.cleanUp !== undefined) {
        return Effect.flatMap(cleanUp.awaitDeletion(slot.account), () => Effect.map(currentDriver, leaseOn))
      }
      return Effect.mapEager(hasWaited ? currentDriver : Effect.succeed(firstDriver), leaseOn)
    }
    // The finalizer is added before there is a slot, so that no interruption can lose one.
    const giveBack = Effect.sync(() => {
      if (waiter !== undefined) release(waiter, held)
    })
    return Effect.flatMap(Scope.addFinalizer(scope, giveBack), () => {
      // The finalizer has run already.
      if (scope.state._tag === "Closed") return Effect.interrupt
      const request = requestOf(caller, options)
      const first = claim(request, hold, options.style)
      // Staying on an account is a preference, unlike a pin.
      const isPreference = request._tag === "Pinned" && caller._tag === "Managed" && caller.target === undefined
      const claimed = isPreference
        ? Effect.catchIf(
          first,
          (refusal) => refusal._tag !== "Late",
          () => claim({ _tag: "Any", avoid: options.avoid ?? avoidNothing }, hold, options.style)
        )
        : first
      return Effect.flatMapEager(
        Effect.mapErrorEager(claimed, (refusal) => refusalError(refusal, now(), outage())),
        granted
      )
    })
  }

  /** Why no account is in rotation; `undefined` while at least one is. */
  const outage = (): Outage | undefined => {
    if (state.size === 0 || state.out < state.size) return undefined
    for (const { account, state: is } of state.slots()) {
      const reason = is === "out" && account.fault !== undefined ? account.reasonFor(account.fault) : undefined
      if (reason !== undefined) return { until: state.nextRecovery, reason }
    }
    return { until: state.nextRecovery, reason: undefined }
  }

  return {
    apply: (driver) => registry.apply(config.now, driver),
    get: (key) => state.get(key)?.account,
    makeTokens: (_, options) => makeTokens(options, clock),
    loginEnded: (account, exit) => {
      const slot = slotOf(account)
      if (slot === undefined) return Effect.void
      if (Exit.isFailure(exit)) return health.loginFailed(slot, exit.cause)
      changes.slot(slot)
      return Effect.void
    },
    lease: (caller, options) =>
      Effect.withFiber((fiber) =>
        Effect.flatMap(
          upstream.driver,
          (driver) =>
            Effect.flatMapEager(
              shell.applied(driver),
              () => lease(caller, options, Context.getUnsafe(fiber.context, Scope.Scope), driver)
            )
        )
      ),
    access: (account, { driver }) =>
      Effect.sync(() => {
        const slot = slotOf(account)
        return slot === undefined ? noReport : reportTo(slot, driver)
      }),
    statesOf: (accounts) =>
      Effect.sync(() =>
        accounts.map((account) => {
          const slot = state.get(account.key)
          const { enabled = true, inUse = 0, state: is = "ready", until = 0 } = slot ?? {}
          const tokens = shell.madeTokens(account)
          return {
            health: is,
            inUse,
            disabled: !enabled,
            fault: account.fault,
            recovery: is === "ready" || !Number.isFinite(until) ? undefined : Math.max(0, until - now()),
            tested: account.tested,
            token: tokens === undefined ? account.configuredToken : tokens.held()
          }
        })
      ),
    queue: Effect.sync(() => {
      const slots = [...state.slots()]
      const available = slots.filter((slot) => slot.available)
      const inUse = [...slots.filter((slot) => slot.inUse > 0), ...state.draining.values()]
      return {
        available: available.length,
        in_use: state.inUse,
        total: state.size,
        available_accounts: available.map(({ account }) => account.identifier),
        in_use_accounts: inUse.map(({ account }) => account.identifier),
        max_inflight_per_account: state.limits.perAccount,
        global_max_inflight: state.limits.global,
        waiting: state.waiting,
        max_queue_size: state.limits.queue,
        cooling: state.cooling,
        out: state.out,
        disabled: state.disabled,
        reason: outage()?.reason ?? null,
        waiters: longestWaiting(state, now())
      }
    }),
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
      inUse: state.inUse,
      waiting: state.waiting,
      accounts: {
        ready: state.size - state.cooling - state.out,
        cooling: state.cooling,
        out: state.out,
        draining: state.draining.size
      },
      ...cleanUp.counts()
    }))
  }
})

/** The requests that have waited longest, the longest first. `now` is on the pool's clock. */
const longestWaiting = (state: PoolState<PooledAccount>, now: number): ReadonlyArray<QueueWaiter> => {
  const shown: Array<QueueWaiter> = []
  for (const { about, pinned, since } of state.queued()) {
    shown.push({ age_ms: Math.round(now - since), style: about, account: pinned?.account.identifier ?? null })
    if (shown.length === maxShownWaiters) break
  }
  return shown
}

/** Makes the pool; the scope ends everything that it does in the background. */
export const makePool: Effect.Effect<AccountPool, never, ConfigStore | Upstream | Scope.Scope> = makePoolOver(
  makeInProcessCore
)
