/**
 * The pool of many nodes: the scripts of the store (`PoolState` in Lua) driven by this node's requests.
 *
 * The one thing to know: the store decides which request gets which account; this node asks, waits, works and gives back. The
 * status that it shows is the store's, or its own numbers while the store is lost.
 */
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Random from "effect/Random"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { hash } from "node:crypto"
import { Store } from "../../cluster/store/Store.ts"
import { findAccount } from "../../config/Account.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { anonymousAccount } from "../../config/sharedConfig.ts"
import { type GatewayError, gatewayError } from "../../domain/GatewayError.ts"
import { defaultUpstream } from "../../domain/routes.ts"
import { type Cooperative, eachCooperatively } from "../../domain/stream/cooperative.ts"
import { monotonicMillis } from "../../domain/time.ts"
import type { Upstream } from "../../upstream/Upstream.ts"
import { isFault, logReturn, logSuspension, verdictOn } from "../accountHealth.ts"
import { type AccountsByKey, makeAccountRegistry } from "../accountRegistry.ts"
import { type Fault, reasonFor } from "../backOff.ts"
import type { AccountPool, Caller, Lease, LeaseOptions } from "../Lease.ts"
import { type Held, heldBy, makePoolOver, type PoolCore, type PoolShell } from "../pool.ts"
import type { PooledAccount } from "../PooledAccount.ts"
import { refusalError, storeUnavailable } from "../refusals.ts"
import { type Claim, type Grant, makeClaims, type NoGrant, type Restore } from "./claims.ts"
import { noVerdict, type SharedFacts, type Verdict, verdictArguments } from "./poolScripts.ts"
import { makeSharedCleanUp } from "./sharedCleanUp.ts"
import { makeSharedTokens, type SharedTokens } from "./sharedTokens.ts"
import { makeSharedView, pollPool } from "./sharedView.ts"

/** What a lease gives back when it ends. */
interface Taken {
  held: Held | undefined
  verdict: ReadonlyArray<string>
}

const makeSharedCore = Effect.fnUntraced(function*(
  shell: PoolShell<SharedTokens>
): Effect.fn.Return<PoolCore<SharedTokens>, never, ConfigStore | Store | Scope.Scope> {
  const config = yield* ConfigStore
  const store = yield* Store
  const clock = yield* Clock.Clock
  const now = () => monotonicMillis(clock)
  const { currentDrivers, driverOf, fork, tokensOf } = shell

  /** The accounts that `byName` and `names` are made of; `undefined` once the store may have other names. */
  let named: AccountsByKey | undefined
  let byName: ReadonlyMap<string, PooledAccount> = new Map()
  let names: ReadonlyMap<string, string> = new Map()
  const nameOf = (account: PooledAccount) =>
    names.get(account.key) ?? store.nameOf(account.account === undefined ? anonymousAccount : account.key)

  function* nameAccounts(accounts: AccountsByKey): Cooperative<void> {
    if (accounts === named) return
    const nextNames = new Map<string, string>()
    const next = new Map<string, PooledAccount>()
    yield* eachCooperatively(accounts, ([key, account]) => {
      const name = store.nameOf(account.account === undefined ? anonymousAccount : key)
      nextNames.set(key, name)
      next.set(name, account)
    })
    byName = next
    names = nextNames
    named = accounts
  }
  const registry = makeAccountRegistry(nameAccounts)
  const claims = yield* makeClaims(store, now)
  const view = makeSharedView(store, config, () => byName, claims)
  const cleanUp = yield* makeSharedCleanUp(store, () => config.now().auto_delete.mode)
  /** Listeners to the end of logins, by the account's name. */
  const logins = new Map<string, Set<() => void>>()

  /** Reports what was seen of an account, apart from a lease's end. */
  const sendReport = Effect.fnUntraced(function*(name: string, since: string, verdict: Verdict, tested: string) {
    const args = verdictArguments(name, since, verdict, yield* Random.next)
    if (args === noVerdict && tested === "") return
    const reply = yield* store.run("report", tested, ...(args === noVerdict ? [name, ...noVerdict.slice(1)] : args))
    yield* logChange(byName.get(name), verdict, reply)
  })
  const report = (name: string, since: string, verdict: Verdict, tested = ""): Effect.Effect<void> =>
    Effect.ignore(sendReport(name, since, verdict, tested))

  /** Logs that an account left the rotation or is back, as the store replied to a report. */
  const logChange = (account: PooledAccount | undefined, { health }: Verdict, reply: ReadonlyArray<string>) => {
    const [state, count, delay] = reply
    if (account === undefined || state === undefined || state === "") return Effect.void
    if (state === "ready") return logReturn(account)
    const reason = health === undefined || !isFault(health) ? "" : reasonFor(health)
    return logSuspension(account, state === "out" ? "out" : "cooling", reason, Number(delay), Number(count))
  }

  /** The accounts that this node is trying, by name: a message may come twice. */
  const trying = new Set<string>()
  /** Tries an account that is out. No other node tries it before the store has received the outcome. */
  const tryAgain = (name: string) =>
    Effect.gen(function*() {
      const account = byName.get(name)
      const driver = account && (yield* driverOf(account))
      // This node cannot try an account that its configuration does not have yet.
      const exit = account === undefined || driver === undefined
        ? undefined
        : yield* Effect.exit(tokensOf(account, driver).probe)
      const failure = exit?._tag === "Failure" ? Cause.findErrorOption(exit.cause) : undefined
      const verdict: Verdict = exit?._tag === "Success"
        ? { health: undefined, retryAfter: undefined }
        : failure?._tag === "Some"
        ? verdictOn(failure.value)
        : { health: "none", retryAfter: undefined }
      yield* Effect.retry(sendReport(name, "try", verdict, ""), Schedule.spaced("1 second"))
    }).pipe(Effect.ensuring(Effect.sync(() => trying.delete(name))), Effect.ignore)

  store.listen((kind, rest) => {
    if (kind === "login") {
      for (const ended of logins.get(rest) ?? []) ended()
    } else if (kind === "due") {
      if (!trying.has(rest)) {
        trying.add(rest)
        fork(tryAgain(rest))
      }
    } else if (kind === "restored") {
      named = undefined
      registry.invalidate()
      for (const account of byName.values()) {
        const tokens = shell.madeTokens(account)
        if (tokens !== undefined) fork(tokens.restore)
      }
    }
  })

  const claimOf = (caller: Caller, { avoid = new Set(), stay, style = "" }: LeaseOptions): Omit<Claim, "patience"> => {
    const about = style.replaceAll(/\s/g, "")
    if (caller._tag === "Direct") return { request: "D", fallback: "", style: about }
    if (caller.target !== undefined) {
      const account = findAccount(config.now().account_table, caller.target)
      return { request: `P:${names.get(account?.identity[0] ?? "") ?? "-"}`, fallback: "", style: about }
    }
    const avoided = Array.from(avoid, (key) => names.get(key)).filter((name) => name !== undefined).sort()
    const any = avoided.length === 0 ? "A" : `A:${avoided.join(",")}`
    // Staying on an account is a preference, unlike a pin.
    const preferred = stay === undefined ? undefined : names.get(stay)
    return preferred === undefined
      ? { request: any, fallback: "", style: about }
      : { request: `P:${preferred}`, fallback: any, style: about }
  }

  let digests: { readonly keys: ReadonlyArray<string>; readonly owners: ReadonlySet<string> } | undefined
  const isConfiguredKey = (owner: string): boolean => {
    const { keys } = config.now()
    if (digests?.keys !== keys) digests = { keys, owners: new Set(keys.map((key) => hash("sha256", key))) }
    return digests.owners.has(owner)
  }

  const release = (grant: Grant, held: Held | undefined, verdict = noVerdict) => {
    const isUnclean = held === undefined ? "" : cleanUp.isUnclean(grant.account, held) ? "1" : "0"
    claims.end(grant, [isUnclean, ...verdict], ([, clean = "", ...seen]) => {
      if (held === undefined) return
      cleanUp.released(grant.account, held, clean)
      const fault = verdict[2]
      if (seen.length > 0 && fault !== undefined) {
        const health = fault === "ok" ? undefined : fault as Fault
        fork(logChange(byName.get(grant.account), { health, retryAfter: undefined }, seen))
      }
    })
  }

  const claimFor = (caller: Caller, options: LeaseOptions, restore: Restore): Effect.Effect<Grant, NoGrant> =>
    Effect.suspend(() => {
      const patience = config.now().upstream.timeouts.queue * 1_000
      const claim = { ...claimOf(caller, options), patience }
      // The store grants an anonymous account while the list is empty, even if the driver needs a credential.
      if (caller._tag === "Managed" && byName.size === 0) {
        return Effect.fail({ _tag: caller.target === undefined ? "Unavailable" : "Unknown" } as const)
      }
      const first = claims.claim(claim, restore)
      if (claim.fallback === "") return first
      return Effect.catchIf(
        first,
        (error) => error._tag !== "Late" && error._tag !== "StoreUnavailable",
        () => claims.claim({ ...claim, request: claim.fallback, fallback: "" }, restore)
      )
    })

  /** The error of a request that gets no slot. */
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
    if (!store.isUp()) return yield* storeUnavailable()
    const scope = yield* Effect.scope
    yield* currentDrivers
    const began = now()
    const asked = store.revision()
    const grant = yield* Effect.catch(
      claimFor(caller, options, restore),
      (error) => Effect.flatMap(noGrantError(error), Effect.fail)
    )
    const taken: Taken = { held: undefined, verdict: noVerdict }
    yield* Scope.addFinalizer(scope, Effect.sync(() => release(grant, taken.held, taken.verdict)))
    // The scope closed during the wait: the finalizer has run already.
    if (scope.state._tag === "Closed") return yield* Effect.interrupt
    // The grant may be of a configuration that this node has not received yet.
    if (grant.revision > store.revision()) yield* restore(config.reach(grant.revision))
    if (store.revision() !== asked) {
      // The key may have been removed while its request waited. A caller within the process has no key.
      if (caller._tag === "Managed" && caller.key !== undefined && !isConfiguredKey(caller.owner)) {
        release(grant, undefined)
        return yield* gatewayError("authentication_failed", "The API key is not valid")
      }
      // A caller's own token may have become a key, which must not go upstream.
      if (caller._tag === "Direct" && isConfiguredKey(caller.owner)) {
        release(grant, undefined)
        return yield* gatewayError("store_unavailable", "The bearer has just become a key: try again", {
          retryAfter: 1
        })
      }
    }
    if (grant.cleaning) yield* restore(cleanUp.awaitDeletion(grant.account))
    // Another upstream may have been configured during the wait.
    const drivers = yield* currentDrivers
    const account = grant.account === "" ? undefined : byName.get(grant.account)
    const driver = account === undefined ? drivers.get(defaultUpstream) : account.driverIn(drivers)
    if (driver === undefined || (grant.account !== "" && account === undefined)) {
      release(grant, undefined)
      return yield* gatewayError("no_account_available", "The account was removed while the request waited")
    }
    if (account !== undefined) tokensOf(account, driver).setCurrent(grant.token)
    const held = taken.held = heldBy(caller, driver)
    return shell.leaseOf(account, held, now() - began, (health, retryAfter) =>
      Effect.map(Random.next, (random) => {
        if (account === undefined || byName.get(grant.account) !== account) return
        const args = verdictArguments(grant.account, grant.epoch, { health, retryAfter }, random)
        if (args !== noVerdict) taken.verdict = args
      }))
  })

  return {
    apply: (drivers) => registry.apply(config.now, drivers),
    get: registry.get,
    makeTokens: (account, options) => {
      const name = () => nameOf(account)
      return makeSharedTokens({
        ...options,
        store,
        now: () => clock.currentTimeMillisUnsafe(),
        name,
        onLogin: (login, ended) => {
          const listeners = logins.get(login) ?? new Set()
          logins.set(login, listeners.add(ended))
          return () => {
            listeners.delete(ended)
            if (listeners.size === 0) logins.delete(login)
          }
        }
      })
    },
    loginEnded: (account, exit) => {
      const failure = Exit.isFailure(exit) ? Cause.findErrorOption(exit.cause) : undefined
      return failure?._tag === "Some" ? report(nameOf(account), "login", verdictOn(failure.value)) : Effect.void
    },
    lease: (caller, options) => Effect.uninterruptibleMask((restore) => lease(restore, caller, options)),
    access: (account, tokens) => {
      const name = nameOf(account)
      return Effect.map(Effect.mapError(view.factsOf([name]), storeUnavailable), (facts) => {
        const { epoch = "0", version = "0" } = facts.get(name) ?? {}
        tokens.setCurrent(version)
        return (health, retryAfter) => report(name, epoch, { health, retryAfter })
      })
    },
    statesOf: (accounts) =>
      Effect.map(
        Effect.orElseSucceed(view.factsOf(accounts.map(nameOf)), () => new Map<string, SharedFacts>()),
        (facts) => accounts.map((account) => view.stateOf(account, facts.get(nameOf(account))))
      ),
    queue: view.queue,
    upstreams: Effect.succeed([]),
    setTestStatus: (account, tested) => {
      const verdict: Verdict = { health: tested === "ok" ? undefined : "none", retryAfter: undefined }
      return report(nameOf(account), "always", verdict, tested)
    },
    watch: (pool) => (watch) => pollPool(pool, watch),
    metrics: Effect.map(view.status(false), (seen) => {
      const { cooling = 0, out = 0, total = 0 } = seen ?? {}
      return {
        inUse: claims.inUse(),
        waiting: claims.waiting(),
        accounts: { ready: byName.size === 0 ? 0 : total - cooling - out, cooling, out, draining: 0 },
        stickyHits: 0,
        stickyMoves: 0,
        ...cleanUp.counts()
      }
    })
  }
})

/** Makes the pool; the scope ends everything that it does in the background. */
export const makeSharedPool: Effect.Effect<AccountPool, never, ConfigStore | Upstream | Store | Scope.Scope> =
  makePoolOver(makeSharedCore)
