/**
 * The pool at work: `PoolState` driven by requests, time, the configuration and what the upstream says of its accounts.
 *
 * The one thing to know: the configuration in effect is looked at when a lease is asked for, so that a change holds for the
 * next lease without waiting for anything; the stream of changes is there to wake those who wait.
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { findAccount } from "../config/Account.ts"
import { CurrentShutdown } from "../config/clock/Shutdown.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { tokenPreview } from "../domain/identity.ts"
import { monotonicMillis } from "../domain/monotonicMillis.ts"
import { type Credential, type Driver, Upstream } from "../upstream/Upstream.ts"
import { type AccountHealthKeeper, makeAccountHealth } from "./accountHealth.ts"
import { directAccess } from "./credentials.ts"
import type {
  AccountAccess,
  AccountFacts,
  AccountPool,
  Caller,
  Lease,
  LeaseOptions,
  PoolWatch,
  QueueWaiter
} from "./Lease.ts"
import type { PooledAccount } from "./PooledAccount.ts"
import { type PoolChanges, PoolState, type Refusal, type Slot, type Ticket, type Wish } from "./PoolState.ts"
import { directTokensOff, type Outage, refusalError } from "./refusals.ts"
import { makeRoster } from "./roster.ts"
import { makeSessionCleanUp } from "./sessionCleanUp.ts"
import { type AccountTokens, makeTokens } from "./tokens.ts"

type AccountSlot = Slot<PooledAccount>
type Claim = Ticket<PooledAccount>

const hourMillis = 3_600_000
/** Waiters that the status of the queue tells of. */
const mostWaiters = 50

const nobody: ReadonlySet<string> = new Set()

/** What a lease has to remember until it ends. */
class Held {
  readonly driver: Driver
  /** The token that was handed out last. */
  token: string | undefined
  sessions: ReadonlyArray<string> = []

  constructor(driver: Driver, token: string | undefined) {
    this.driver = driver
    this.token = token
  }
}

/** An account's credential for one lease, which notes what it hands out. */
class LeasedCredential implements Credential {
  private readonly tokens: Credential
  private readonly held: Held
  private readonly noted = (token: string | undefined) => {
    this.held.token = token
    return token
  }

  constructor(tokens: Credential, held: Held) {
    this.tokens = tokens
    this.held = held
  }

  get token(): Credential["token"] {
    return Effect.mapEager(this.tokens.token, this.noted)
  }

  renew(stale: string | undefined): ReturnType<Credential["renew"]> {
    return Effect.map(this.tokens.renew(stale), this.noted)
  }
}

/** Makes the pool; the scope ends everything that it does in the background. */
export const makePool: Effect.Effect<
  AccountPool,
  never,
  ConfigStore | Upstream | Scope.Scope
> = Effect.gen(function*() {
  const config = yield* ConfigStore
  const upstream = yield* Upstream
  const shutdown = yield* CurrentShutdown
  const clock = yield* Clock.Clock
  const state = new PoolState<PooledAccount>({ perAccount: 1, global: 1, queue: 0, direct: 1 })
  const roster = makeRoster(state)
  const fork = yield* FiberSet.makeRuntime<never, void, never>()
  const counters = { leases: 0, logins: 0, refreshes: 0, loginFailures: 0 }

  const watches = new Set<PoolWatch>()
  /** Nobody is told as long as nobody watches. */
  const changes: PoolChanges<PooledAccount> = {
    slot(slot) {
      for (const { pool } of watches) pool(slot?.account.identifier)
    },
    queue() {
      for (const { queue } of watches) queue()
    }
  }

  /** The driver to work with now, with the pool as the configuration in effect says. */
  const applied = (driver: Driver): Effect.Effect<Driver> =>
    Effect.mapEager(roster.apply(config.unsafeCurrent, driver), (changed) => {
      if (changed) health.wake()
      return driver
    })
  const currentDriver = Effect.flatMap(upstream.driver, applied)

  const health: AccountHealthKeeper = yield* makeAccountHealth(
    state,
    (slot) => Effect.flatMap(currentDriver, (driver) => tokensOf(slot, driver).probe)
  )
  const cleanUp = yield* makeSessionCleanUp(state, () => config.unsafeCurrent().auto_delete.mode)

  const tokensOf = (slot: AccountSlot, driver: Driver): AccountTokens => {
    const account = slot.account
    if (account.tokens?.driver === driver) return account.tokens
    account.tokens = makeTokens({
      driver,
      login: account.login,
      configured: account.configuredToken,
      refreshAfter: () => config.unsafeCurrent().runtime.token_refresh_interval_hours * hourMillis,
      fork,
      ended: (exit, kind) => {
        if (Exit.isSuccess(exit)) {
          if (kind === "login") counters.logins++
          else counters.refreshes++
          changes.slot(slot)
          return Effect.void
        }
        counters.loginFailures++
        return slot.account === account ? health.loginFailed(slot, exit.cause) : Effect.void
      }
    }, clock)
    return account.tokens
  }

  /** What a lease and an access have in common. */
  const accessTo = (slot: AccountSlot, held: Held): AccountAccess => {
    const account = slot.account
    const tokens = tokensOf(slot, held.driver)
    const epoch = account.epoch
    return {
      driver: held.driver,
      credential: new LeasedCredential(tokens.credential, held),
      account: account.key,
      identifier: account.identifier,
      accountHash: account.hash,
      secrets: () => held.token === undefined ? account.secrets : [held.token, ...account.secrets],
      refreshToken: Effect.sync(() => tokens.drop(held.token)),
      report: (verdict, retryAfter) =>
        slot.account === account && account.tokens === tokens
          ? health.report(slot, verdict, retryAfter, account.epoch === epoch)
          : Effect.void
    }
  }

  const wishOf = (caller: Caller, { avoid = nobody, stay }: LeaseOptions): Wish => {
    if (caller._tag === "Direct") return { _tag: "Direct" }
    if (caller.target !== undefined) {
      const account = findAccount(config.unsafeCurrent().account_table, caller.target)
      return { _tag: "Pinned", key: account?.identity[0] ?? "" }
    }
    return stay !== undefined && state.get(stay)?.state === "ready"
      ? { _tag: "Pinned", key: stay }
      : { _tag: "Any", avoid }
  }

  /** Waits until the queue has served a ticket. A wait that ends in any other way leaves nothing behind. */
  const served = (ticket: Claim, settled: Deferred.Deferred<void, Refusal>, patience: number) => {
    const close = () => Deferred.doneUnsafe(settled, Exit.fail({ _tag: "Closing" }))
    const unwatch = shutdown.watch(close)
    if (shutdown.isOver) close()
    return Effect.timeoutOrElse(Deferred.await(settled), {
      duration: patience,
      orElse: () => Effect.fail(state.late(ticket))
    }).pipe(
      Effect.onExit((exit) =>
        Effect.sync(() => {
          unwatch()
          if (Exit.isFailure(exit)) state.close(ticket)
        })
      ),
      Effect.as(ticket)
    )
  }

  /** Takes a ticket: at once where there is a slot, else when the queue has served it. */
  const claim = (
    wish: Wish,
    hold: (ticket: Claim) => void,
    about: string | undefined
  ): Effect.Effect<Claim, Refusal> => {
    const patience = config.unsafeCurrent().upstream.timeouts.queue * 1_000
    const settled = Deferred.makeUnsafe<void, Refusal>()
    const ticket = state.request(wish, monotonicMillis(clock), patience, (refusal) => {
      Deferred.doneUnsafe(settled, refusal === undefined ? Exit.void : Exit.fail(refusal))
    }, about)
    if ("_tag" in ticket) return Effect.fail(ticket)
    hold(ticket)
    if (ticket.state === "granted") return Effect.succeed(ticket)
    return served(ticket, settled, patience)
  }

  const release = (ticket: Claim, held: Held | undefined) => {
    state.close(ticket)
    if (held !== undefined && (held.sessions.length > 0 || ticket.slot?.account.unclean !== undefined)) {
      cleanUp.released(ticket.slot, held)
    }
  }

  const lease = (
    caller: Caller,
    options: LeaseOptions,
    scope: Scope.Scope,
    firstDriver: Driver
  ): Effect.Effect<Lease, GatewayError> => {
    const began = monotonicMillis(clock)
    let hasWaited = false
    let ticket: Claim | undefined
    let held: Held | undefined
    const hold = (taken: Claim) => {
      ticket = taken
      hasWaited ||= taken.state !== "granted"
    }
    const claimed = (taken: Claim): Effect.Effect<Lease> => {
      const { slot } = taken
      const given = (driver: Driver): Lease => {
        counters.leases++
        const holding = held = new Held(driver, caller._tag === "Direct" ? caller.token : undefined)
        return {
          ...(slot === undefined ? directAccess(driver, holding.token) : accessTo(slot, holding)),
          waited: monotonicMillis(clock) - began,
          usedSession: (sessionId) => {
            holding.sessions = [...holding.sessions, sessionId]
            return Effect.void
          }
        }
      }
      // A wait may have been long enough for another upstream to be configured.
      if (slot?.account.cleanUp !== undefined) {
        return Effect.flatMap(cleanUp.settled(slot.account), () => Effect.map(currentDriver, given))
      }
      return Effect.mapEager(hasWaited ? currentDriver : Effect.succeed(firstDriver), given)
    }
    // What gives the slot back stands before there is one: nothing can come between.
    const giveBack = Effect.sync(() => {
      if (ticket !== undefined) release(ticket, held)
    })
    return Effect.flatMap(Scope.addFinalizer(scope, giveBack), () => {
      // It has run already.
      if (scope.state._tag === "Closed") return Effect.interrupt
      const wish = wishOf(caller, options)
      const first = claim(wish, hold, options.style)
      // Staying on an account is a preference, unlike a pin.
      const isPreference = wish._tag === "Pinned" && caller._tag === "Managed" && caller.target === undefined
      const granted = isPreference
        ? Effect.catchIf(
          first,
          (refusal) => refusal._tag !== "Late",
          () => claim({ _tag: "Any", avoid: options.avoid ?? nobody }, hold, options.style)
        )
        : first
      return Effect.flatMapEager(
        Effect.mapErrorEager(granted, (refusal) => refusalError(refusal, monotonicMillis(clock), outage())),
        claimed
      )
    })
  }

  /** Why no account is in rotation, where they are all out. */
  const outage = (): Outage | undefined => {
    if (state.size === 0 || state.out < state.size) return undefined
    for (const { account, state: is } of state.slots()) {
      const reason = is === "out" && account.fault !== undefined ? account.reasonFor(account.fault) : undefined
      if (reason !== undefined) return { until: state.nextRecovery, reason }
    }
    return { until: state.nextRecovery, reason: undefined }
  }

  const slotOf = (identifier: string): AccountSlot | undefined => {
    const account = findAccount(config.unsafeCurrent().account_table, identifier)
    return account === undefined ? undefined : state.get(account.identity[0]!)
  }

  const factsOf = (slot: AccountSlot, now: number): AccountFacts => {
    const { account, inUse, until } = slot
    const token = account.tokens === undefined ? account.configuredToken : account.tokens.held()
    return {
      identifier: account.identifier,
      hash: account.hash,
      inUse,
      health: slot.state,
      disabled: !slot.enabled,
      reason: slot.state === "ready" || account.fault === undefined ? undefined : account.reasonFor(account.fault),
      recovery: slot.state === "ready" || !Number.isFinite(until) ? undefined : Math.max(0, until - now),
      testStatus: slot.state === "out" ? "failed" : account.tested,
      hasToken: token !== undefined,
      tokenPreview: token === undefined ? "" : tokenPreview(token)
    }
  }

  yield* currentDriver
  yield* Effect.forkScoped(Stream.runForEach(config.changes, () => currentDriver))

  return {
    lease: (caller, options) =>
      caller._tag === "Direct" && !config.unsafeCurrent().auth.direct_tokens
        ? Effect.suspend(directTokensOff)
        : Effect.withFiber((fiber) =>
          Effect.flatMap(upstream.driver, (driver) =>
            Effect.flatMapEager(applied(driver), () =>
              lease(caller, options, Context.getUnsafe(fiber.context, Scope.Scope), driver)))
        ),
    status: Effect.map(Effect.andThen(currentDriver, Clock.Clock), (clock) => {
      const now = monotonicMillis(clock)
      const waiters = longestWaiting(state, now)
      const available: Array<string> = []
      const inUse: Array<string> = []
      for (const slot of state.slots()) {
        if (slot.available) available.push(slot.account.identifier)
        if (slot.inUse > 0) inUse.push(slot.account.identifier)
      }
      for (const slot of state.draining.values()) inUse.push(slot.account.identifier)
      return {
        available: available.length,
        in_use: state.inUse,
        total: state.size,
        available_accounts: available,
        in_use_accounts: inUse,
        max_inflight_per_account: state.limits.perAccount,
        global_max_inflight: state.limits.global,
        recommended_concurrency: state.size * state.limits.perAccount,
        waiting: state.waiting,
        max_queue_size: state.limits.queue,
        cooling: state.cooling,
        out: state.out,
        disabled: state.disabled,
        reason: outage()?.reason ?? null,
        oldest_wait_ms: waiters[0]?.age_ms ?? null,
        waiters
      }
    }),
    withAccount: (identifier) =>
      Effect.flatMap(currentDriver, (driver) => {
        const slot = slotOf(identifier)
        return slot === undefined
          ? Effect.fail(gatewayError("not_found", "No such account is configured"))
          : Effect.succeed(accessTo(slot, new Held(driver, undefined)))
      }),
    describe: (identifiers) =>
      Effect.flatMap(currentDriver, () =>
        Effect.clockWith((clock) => {
          const now = monotonicMillis(clock)
          const slots = identifiers.map(slotOf).filter((slot) => slot !== undefined)
          return Effect.succeed(slots.map((slot) => factsOf(slot, now)))
        })),
    setTestStatus: (identifier, status) =>
      Effect.flatMap(currentDriver, () => {
        const slot = slotOf(identifier)
        if (slot === undefined) return Effect.void
        slot.account.tested = status
        changes.slot(slot)
        return status === "ok" ? health.report(slot, undefined, undefined, true) : Effect.void
      }),
    watch: (watch) =>
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
    metrics: Effect.map(currentDriver, () => {
      const { done, failed } = cleanUp.counts()
      return {
        inUse: state.inUse,
        waiting: state.waiting,
        accounts: {
          ready: state.size - state.cooling - state.out,
          cooling: state.cooling,
          out: state.out,
          draining: state.draining.size
        },
        ...counters,
        sessionCleanUps: done,
        sessionCleanUpFailures: failed
      }
    })
  }
})

/** Those who wait longest, the longest first. `now` is on the pool's clock. */
const longestWaiting = (state: PoolState<PooledAccount>, now: number): ReadonlyArray<QueueWaiter> => {
  const shown: Array<QueueWaiter> = []
  for (const { about, pinned, since } of state.queued()) {
    shown.push({ age_ms: Math.round(now - since), style: about, account: pinned?.account.identifier ?? null })
    if (shown.length === mostWaiters) break
  }
  return shown
}
