/**
 * The pool that many nodes share: the scripts of the store (`PoolState` in Lua) driven by this node's requests.
 *
 * The one thing to know: the store decides who gets what; this node asks, waits, works and gives back. What it shows of the
 * pool is what the store says, and while the store is lost, what this node has itself.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FiberSet from "effect/FiberSet"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { hash } from "node:crypto"
import { Store } from "../../cluster/store/Store.ts"
import { findAccount } from "../../config/Account.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { type GatewayError, gatewayError } from "../../domain/GatewayError.ts"
import { monotonicMillis } from "../../domain/monotonicMillis.ts"
import { type Driver, Upstream } from "../../upstream/Upstream.ts"
import { verdictOn } from "../accountHealth.ts"
import { type Fault, reasonFor } from "../backOff.ts"
import { directAccess } from "../credentials.ts"
import type { AccountAccess, AccountPool, Caller, Lease, LeaseOptions } from "../Lease.ts"
import { pollPool } from "../pollPool.ts"
import type { PooledAccount } from "../PooledAccount.ts"
import { directTokensOff, refusalError, storeUnavailable } from "../refusals.ts"
import { type Claim, type Grant, makeClaims, type NoGrant, type Restore } from "./claims.ts"
import type { SharedFacts } from "./poolView.ts"
import { makeSharedCleanUp } from "./sharedCleanUp.ts"
import { makeSharedRoster } from "./sharedRoster.ts"
import { makeSharedTokens, type SharedTokens } from "./sharedTokens.ts"
import { makeSharedView } from "./sharedView.ts"
import { noVerdict, type Verdict, verdictArguments } from "./verdicts.ts"

const hourMillis = 3_600_000

/** What a lease has to remember until it ends. */
class Held {
  readonly driver: Driver
  /** The token that was handed out last. */
  token: string | undefined
  sessions: ReadonlyArray<string> = []
  verdict: ReadonlyArray<string> = noVerdict

  constructor(driver: Driver, token: string | undefined) {
    this.driver = driver
    this.token = token
  }
}

/** Makes the pool; the scope ends everything that it does in the background. */
export const makeSharedPool: Effect.Effect<
  AccountPool,
  never,
  ConfigStore | Upstream | Store | Scope.Scope
> = Effect.gen(function*() {
  const config = yield* ConfigStore
  const upstream = yield* Upstream
  const store = yield* Store
  const clock = yield* Clock.Clock
  const now = () => monotonicMillis(clock)
  const fork = yield* FiberSet.makeRuntime<never, void, never>()
  const roster = makeSharedRoster(store)
  const claims = yield* makeClaims(store, now)
  const view = makeSharedView(store, config, roster, claims)
  const cleanUp = yield* makeSharedCleanUp(store, () => config.unsafeCurrent().auto_delete.mode)
  const counters = { leases: 0, logins: 0, refreshes: 0, loginFailures: 0 }
  const tokens = new WeakMap<PooledAccount, SharedTokens>()
  /** Who waits for the end of a login, by the account's name. */
  const logins = new Map<string, Set<() => void>>()

  const currentDriver = Effect.flatMap(
    upstream.driver,
    (driver) => Effect.as(roster.apply(config.unsafeCurrent, driver), driver)
  )

  /** Reports what was seen of an account, apart from a lease's end. */
  const reported = Effect.fnUntraced(function*(name: string, since: string, verdict: Verdict, tested: string) {
    const args = verdictArguments(name, since, verdict, yield* Random.next)
    if (args === noVerdict && tested === "") return
    const reply = yield* store.run("report", tested, ...(args === noVerdict ? [name, ...noVerdict.slice(1)] : args))
    yield* tell(roster.named(name), verdict, reply)
  })
  const report = (name: string, since: string, verdict: Verdict, tested = ""): Effect.Effect<void> =>
    Effect.ignore(reported(name, since, verdict, tested))

  /** Tells operators of an account that left the rotation or is back. */
  const tell = (account: PooledAccount | undefined, { health }: Verdict, reply: ReadonlyArray<string>) => {
    const [state, count, delay] = reply
    if (account === undefined || state === undefined || state === "") return Effect.void
    if (state === "ready") {
      return Effect.annotateLogs(Effect.logInfo("An upstream account is back in rotation"), { account: account.hash })
    }
    const log = state === "out" ? Effect.logWarning : Effect.logDebug
    return log("An upstream account leaves the rotation").pipe(
      Effect.annotateLogs({
        account: account.hash,
        reason: health === undefined || health === "none" || health === "token_expired" ? "" : reasonFor(health),
        seconds: Number(delay) / 1_000,
        count: Number(count)
      })
    )
  }

  const tokensOf = (account: PooledAccount, driver: Driver): SharedTokens => {
    const known = tokens.get(account)
    if (known?.driver === driver) return known
    const name = () => roster.nameOf(account.key) ?? store.nameOf(account.key)
    const made = makeSharedTokens({
      driver,
      login: account.login,
      configured: account.configuredToken,
      refreshAfter: () => config.unsafeCurrent().runtime.token_refresh_interval_hours * hourMillis,
      fork,
      ended: (exit, kind) => {
        if (Exit.isSuccess(exit)) {
          if (kind === "login") counters.logins++
          else counters.refreshes++
          return Effect.void
        }
        counters.loginFailures++
        const failure = Cause.findErrorOption(exit.cause)
        return failure._tag === "None" ? Effect.void : report(name(), "login", verdictOn(failure.value))
      },
      store,
      name,
      onLogin: (login, heard) => {
        const waiters = logins.get(login) ?? new Set()
        logins.set(login, waiters.add(heard))
        return () => {
          waiters.delete(heard)
          if (waiters.size === 0) logins.delete(login)
        }
      }
    })
    tokens.set(account, made)
    return made
  }

  /** Accounts that this node tries, by name: it may be told of one twice. */
  const trying = new Set<string>()
  /** Finds out whether an account that is out works again. Nobody else does until the store has heard how that ended. */
  const tryAgain = (name: string) =>
    Effect.gen(function*() {
      const driver = yield* currentDriver
      const account = roster.named(name)
      // An account that this node does not know yet is one that it could not try.
      const exit = account === undefined ? undefined : yield* Effect.exit(tokensOf(account, driver).probe)
      const failure = exit?._tag === "Failure" ? Cause.findErrorOption(exit.cause) : undefined
      const verdict: Verdict = exit?._tag === "Success"
        ? { health: undefined, retryAfter: undefined }
        : failure?._tag === "Some"
        ? verdictOn(failure.value)
        : { health: "none", retryAfter: undefined }
      yield* Effect.retry(reported(name, "try", verdict, ""), Schedule.spaced("1 second"))
    }).pipe(Effect.ensuring(Effect.sync(() => trying.delete(name))), Effect.ignore)

  store.listen((kind, rest) => {
    if (kind === "login") {
      for (const heard of logins.get(rest) ?? []) heard()
    } else if (kind === "due") {
      if (!trying.has(rest)) {
        trying.add(rest)
        fork(tryAgain(rest))
      }
    } else if (kind === "restored") {
      for (const [, account] of roster.all()) {
        const held = tokens.get(account)
        if (held !== undefined) fork(held.restore)
      }
    }
  })

  /** What a lease and an access have in common. */
  const accessTo = (
    account: PooledAccount,
    held: Held,
    reported: (verdict: Verdict) => Effect.Effect<void>
  ): AccountAccess => {
    const shared = tokensOf(account, held.driver)
    const remember = (token: string | undefined) => {
      held.token = token
      return token
    }
    return {
      driver: held.driver,
      credential: {
        token: Effect.map(shared.credential.token, remember),
        renew: (stale) => Effect.map(shared.credential.renew(stale), remember)
      },
      account: account.key,
      identifier: account.identifier,
      accountHash: account.hash,
      secrets: () => held.token === undefined ? account.secrets : [held.token, ...account.secrets],
      refreshToken: Effect.sync(() => shared.drop(held.token)),
      report: (health, retryAfter) => reported({ health, retryAfter })
    }
  }

  const claimOf = (caller: Caller, { avoid = new Set(), stay, style }: LeaseOptions): Omit<Claim, "patience"> => {
    const about = (style ?? "").replaceAll(/\s/g, "")
    if (caller._tag === "Direct") return { wish: "D", instead: "", style: about }
    if (caller.target !== undefined) {
      const account = findAccount(config.unsafeCurrent().account_table, caller.target)
      return { wish: `P:${roster.nameOf(account?.identity[0] ?? "") ?? "-"}`, instead: "", style: about }
    }
    const names = Array.from(avoid, roster.nameOf).filter((name) => name !== undefined).sort()
    const any = names.length === 0 ? "A" : `A:${names.join(",")}`
    // Staying on an account is a preference, unlike a pin.
    const preferred = stay === undefined ? undefined : roster.nameOf(stay)
    return preferred === undefined
      ? { wish: any, instead: "", style: about }
      : { wish: `P:${preferred}`, instead: any, style: about }
  }

  let digests: { readonly keys: ReadonlyArray<string>; readonly owners: ReadonlySet<string> } | undefined
  /** A key may have been removed while its request waited. */
  const isConfigured = (owner: string): boolean => {
    const { keys } = config.unsafeCurrent()
    if (digests?.keys !== keys) digests = { keys, owners: new Set(keys.map((key) => hash("sha256", key))) }
    return digests.owners.has(owner)
  }

  const release = (grant: Grant, held: Held | undefined) => {
    const leavings = held ?? { driver: undefined, token: undefined, sessions: [] }
    const { driver } = leavings
    const left = driver === undefined ? undefined : { driver, token: leavings.token, sessions: leavings.sessions }
    const unclean = left === undefined ? "" : cleanUp.isUnclean(grant.account, left) ? "1" : "0"
    claims.end(grant, [unclean, ...(held?.verdict ?? noVerdict)], ([, clean = "", ...seen]) => {
      if (left !== undefined) cleanUp.released(grant.account, left, clean)
      const fault = held?.verdict[2]
      if (seen.length > 0 && fault !== undefined) {
        const health = fault === "ok" ? undefined : fault as Fault
        fork(tell(roster.named(grant.account), { health, retryAfter: undefined }, seen))
      }
    })
  }

  const claimFor = (
    caller: Caller,
    options: LeaseOptions,
    restore: Restore
  ): Effect.Effect<Grant, NoGrant> =>
    Effect.suspend(() => {
      const patience = config.unsafeCurrent().upstream.timeouts.queue * 1_000
      const claim = { ...claimOf(caller, options), patience }
      // The roster of no accounts has one that stands for the upstream itself, where that asks for none.
      if (caller._tag === "Managed" && roster.size() === 0) {
        return Effect.fail({ _tag: caller.target === undefined ? "Unavailable" : "Unknown" } as const)
      }
      const first = claims.claim(claim, restore)
      if (claim.instead === "") return first
      return Effect.catchIf(
        first,
        (error) => error._tag !== "Late" && error._tag !== "StoreUnavailable",
        () => claims.claim({ ...claim, wish: claim.instead, instead: "" }, restore)
      )
    })

  /** What a request is told that gets no slot. */
  const noGrantError = (error: NoGrant): Effect.Effect<GatewayError> => {
    if (error._tag === "StoreUnavailable") return Effect.succeed(storeUnavailable())
    const outage = error._tag === "Unavailable" ? view.outage(now) : Effect.succeed(undefined)
    return Effect.map(outage, (found) => refusalError(error, now(), found))
  }

  const lease = Effect.fnUntraced(function*(
    restore: Restore,
    caller: Caller,
    options: LeaseOptions
  ): Effect.fn.Return<Lease, GatewayError, Scope.Scope> {
    if (caller._tag === "Direct" && !config.unsafeCurrent().auth.direct_tokens) return yield* directTokensOff()
    if (!store.isUp()) return yield* storeUnavailable()
    const scope = yield* Effect.scope
    yield* currentDriver
    const began = now()
    const asked = store.revision()
    const grant = yield* Effect.catch(
      claimFor(caller, options, restore),
      (error) => Effect.flatMap(noGrantError(error), Effect.fail)
    )
    let held: Held | undefined
    yield* Scope.addFinalizer(scope, Effect.sync(() => release(grant, held)))
    // Whoever asked has left meanwhile: it is released already.
    if (scope.state._tag === "Closed") return yield* Effect.interrupt
    // It may have been given under a configuration that this node has not seen yet.
    if (grant.revision > store.revision()) yield* restore(config.reach(grant.revision))
    // A caller within the process has none.
    const hasKey = caller._tag === "Managed" && caller.key !== undefined
    if (store.revision() !== asked && hasKey && !isConfigured(caller.owner)) {
      release(grant, undefined)
      return yield* gatewayError("authentication_failed", "The API key is not valid")
    }
    // What went upstream as a token before may be a key by now.
    if (store.revision() !== asked && caller._tag === "Direct" && isConfigured(caller.owner)) {
      release(grant, undefined)
      return yield* gatewayError("store_unavailable", "The bearer has just become a key: try again", { retryAfter: 1 })
    }
    if (grant.cleaning) yield* restore(cleanUp.settled(grant.account))
    // The wait may have been long enough for another upstream to be configured.
    const driver = yield* currentDriver
    counters.leases++
    const holding = held = new Held(driver, caller._tag === "Direct" ? caller.token : undefined)
    const account = grant.account === "" ? undefined : roster.named(grant.account)
    if (grant.account !== "" && account === undefined) {
      release(grant, undefined)
      return yield* gatewayError("no_account_available", "The account was removed while the request waited")
    }
    if (account !== undefined) tokensOf(account, driver).know(grant.token)
    const remember = (verdict: Verdict) =>
      Effect.map(Random.next, (random) => {
        if (roster.named(grant.account) !== account) return
        const args = verdictArguments(grant.account, grant.epoch, verdict, random)
        if (args !== noVerdict) holding.verdict = args
      })
    return {
      ...(account === undefined ? directAccess(driver, holding.token) : accessTo(account, holding, remember)),
      waited: now() - began,
      usedSession: (sessionId) =>
        Effect.sync(() => {
          holding.sessions = [...holding.sessions, sessionId]
        })
    }
  })

  const accountOf = (identifier: string): PooledAccount | undefined => {
    const account = findAccount(config.unsafeCurrent().account_table, identifier)
    return account === undefined ? undefined : roster.get(account.identity[0]!)
  }

  yield* currentDriver
  yield* Effect.forkScoped(Stream.runForEach(config.changes, () => currentDriver))

  const pool: AccountPool = {
    lease: (caller, options) => Effect.uninterruptibleMask((restore) => lease(restore, caller, options)),
    status: Effect.andThen(currentDriver, view.queue),
    withAccount: (identifier) =>
      Effect.flatMap(currentDriver, (driver) => {
        const account = accountOf(identifier)
        const name = account === undefined ? undefined : roster.nameOf(account.key)
        if (account === undefined || name === undefined) {
          return Effect.fail(gatewayError("not_found", "No such account is configured"))
        }
        return Effect.map(Effect.mapError(view.factsOf([name]), storeUnavailable), (facts) => {
          const fact = facts.get(name)
          tokensOf(account, driver).know(fact?.version ?? "0")
          return accessTo(account, new Held(driver, undefined), (verdict) => report(name, fact?.epoch ?? "0", verdict))
        })
      }),
    describe: (identifiers) =>
      Effect.gen(function*() {
        yield* currentDriver
        const accounts = identifiers.map(accountOf).filter((account) => account !== undefined)
        const names = accounts.map((account) => roster.nameOf(account.key) ?? "")
        const facts = yield* Effect.orElseSucceed(view.factsOf(names), () => new Map<string, SharedFacts>())
        return accounts.map((account, i) => view.shown(account, facts.get(names[i]!)))
      }),
    setTestStatus: (identifier, tested) =>
      Effect.flatMap(currentDriver, () => {
        const account = accountOf(identifier)
        const name = account === undefined ? undefined : roster.nameOf(account.key)
        if (name === undefined) return Effect.void
        const verdict: Verdict = { health: tested === "ok" ? undefined : "none", retryAfter: undefined }
        return report(name, "always", verdict, tested)
      }),
    // Other nodes change it too, and tell nobody.
    watch: (watch) => pollPool(pool, watch),
    metrics: Effect.map(Effect.andThen(currentDriver, view.status(false)), (seen) => {
      const { done, failed } = cleanUp.counts()
      const { cooling = 0, out = 0, total = 0 } = seen ?? {}
      return {
        inUse: claims.inUse(),
        waiting: claims.waiting(),
        accounts: { ready: roster.size() === 0 ? 0 : total - cooling - out, cooling, out, draining: 0 },
        ...counters,
        sessionCleanUps: done,
        sessionCleanUpFailures: failed
      }
    })
  }
  return pool
})
