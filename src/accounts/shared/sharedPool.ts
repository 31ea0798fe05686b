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
import type { ClaimTarget } from "../../cluster/store/StoreShape.ts"
import { accountsNamed } from "../../config/Account.ts"
import { ConfigStore } from "../../config/ConfigStore.ts"
import { CurrentNotices } from "../../config/Notices.ts"
import { anonymousKey } from "../../config/sharedAccounts.ts"
import { SharedRevision } from "../../config/sharedConfig.ts"
import { unknownRetryAfter } from "../../domain/classifyUpstreamFailure.ts"
import { GatewayError, gatewayError } from "../../domain/GatewayError.ts"
import { keyDigest } from "../../domain/identity.ts"
import { isOfMaker } from "../../domain/makers.ts"
import { servesModel } from "../../domain/routes.ts"
import { type Cooperative, eachCooperatively } from "../../domain/stream/cooperative.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { isFailedTarget } from "../../placement/needs.ts"
import { never } from "../../placement/poolQueue.ts"
import type { Upstreams } from "../../upstream/Upstreams.ts"
import { isFault, logReturn, logSuspension, publishBack, verdictOn } from "../accountHealth.ts"
import { type AccountsByKey, makeAccountRegistry } from "../accountRegistry.ts"
import { jitter } from "../backOff.ts"
import { budgetsOf, hasBudgets, type LeaseBudget } from "../budgets.ts"
import type { Caller, Lease, PlacementRequest, Stickiness, TurnMemory } from "../Lease.ts"
import { type Held, heldBy } from "../leased.ts"
import { type MadePool, makePoolOver, type PoolCore, type PoolShell, upstreamsOf } from "../pool.ts"
import type { PooledAccount } from "../PooledAccount.ts"
import {
  ambiguousAccount,
  disabledUpstreams,
  notAKey,
  otherUpstream,
  overBudget,
  refusalError,
  storeUnavailable
} from "../refusals.ts"
import { logBack, logCooled } from "../upstreamHealth.ts"
import { type Claim, type Grant, makeClaims, type NoGrant, type Restore } from "./claims.ts"
import {
  accountReport,
  countOf,
  type LeaseEnd,
  needsWords,
  type SharedFacts,
  usedFields,
  type Verdict
} from "./poolScripts.ts"
import { SharedBudgets } from "./sharedBudgets.ts"
import { makeSharedCleanUp } from "./sharedCleanUp.ts"
import { makeSharedTokens, type SharedTokens } from "./sharedTokens.ts"
import { makeSharedView, pollPool } from "./sharedView.ts"

/** What a lease gives back when it ends. */
interface Taken {
  held: Held | undefined
  seen: LeaseEnd["seen"]
  upstream: LeaseEnd["upstream"]
  /** The conversation's account is noted. */
  isNoted: boolean
  /** What its turn leaves to the next one. */
  readonly memory: TurnMemory | undefined
  /** What it has used, to settle what it has reserved of budgets; `undefined` if it has reserved nothing. */
  used: LeaseBudget["used"] | undefined
}

/** Tokens that are brought back to the store at the same time. */
const restoresAtOnce = 100

/** A lease that has shown nothing. */
const nothingTaken: Taken = {
  held: undefined,
  seen: undefined,
  upstream: undefined,
  isNoted: false,
  used: undefined,
  memory: undefined
}

/** The place of what turns leave to the next ones. */
const threadsPlace = "gw:{main}:threads"

/** Accounts that the store looks at for one request. */
const mostPreferred = 64

/** Accounts whose windows one request brings to the store; those of others come with the requests that follow. */
const mostLearned = 64

const makeSharedCore = Effect.fnUntraced(function*(
  shell: PoolShell<SharedTokens>
): Effect.fn.Return<PoolCore<SharedTokens>, never, ConfigStore | SharedRevision | Store | Scope.Scope> {
  const config = yield* ConfigStore
  const { reach } = yield* SharedRevision
  const store = yield* Store
  const clock = yield* Clock.Clock
  const notices = yield* CurrentNotices
  const now = () => monotonicMillis(clock)
  const storeNow = () => clock.currentTimeMillisUnsafe() + store.clockOffset()
  const { currentDrivers, driverOf, fork, modelLimits, quotas, tokensOf } = shell

  /** The accounts that `byName` and `names` are made of; `undefined` once the store may have other names. */
  let named: AccountsByKey | undefined
  let byName: ReadonlyMap<string, PooledAccount> = new Map()
  let names: ReadonlyMap<string, string> = new Map()
  /** How many accounts each upstream has here. */
  let counts: ReadonlyMap<string, number> = new Map()
  const keyOf = ({ account, key, upstream }: PooledAccount) => account === undefined ? anonymousKey(upstream) : key
  const nameOf = (account: PooledAccount) => names.get(account.key) ?? store.secrets.nameOf(keyOf(account))

  function* nameAccounts(accounts: AccountsByKey): Cooperative<void> {
    claims.review()
    if (accounts === named) return
    const nextNames = new Map<string, string>()
    const next = new Map<string, PooledAccount>()
    const nextCounts = new Map<string, number>()
    yield* eachCooperatively(accounts, ([key, account]) => {
      const name = store.secrets.nameOf(keyOf(account))
      nextNames.set(key, name)
      next.set(name, account)
      nextCounts.set(account.upstream, (nextCounts.get(account.upstream) ?? 0) + 1)
    })
    byName = next
    names = nextNames
    counts = nextCounts
    named = accounts
  }
  /** Accounts whose windows have changed since a request brought them to the store. */
  const learned = new Set<PooledAccount>()
  quotas.changed = (account) => learned.add(account)
  const takeLearned = () => {
    const taken: Array<readonly [account: string, windows: string]> = []
    for (const account of learned) {
      if (taken.length >= mostLearned) break
      learned.delete(account)
      // The ends of their leases send them too, until the store has received that.
      const windows = account.quota?.unsent ?? ""
      if (windows !== "") taken.push([nameOf(account), windows])
    }
    return taken
  }
  const claims = yield* makeClaims(store, now, takeLearned)
  const registry = makeAccountRegistry(nameAccounts)
  const view = makeSharedView(store, config, () => byName, claims, storeNow)
  const cleanUp = yield* makeSharedCleanUp(store, () => config.now().auto_delete.mode)
  let stickyHits = 0
  let stickyMoves = 0
  /** Listeners to the end of logins, by the account's name. */
  const logins = new Map<string, Set<() => void>>()

  /** Reports what was seen of an account, apart from a lease's end. */
  const sendReport = Effect.fnUntraced(function*(name: string, since: string, verdict: Verdict, tested: string) {
    const seen = accountReport(name, since, verdict, yield* Random.next)
    if (seen === undefined && tested === "") return
    const reply = yield* store.run("report", tested, JSON.stringify(seen ?? { account: name }))
    yield* logChange(byName.get(name), verdict, reply)
  })
  const report = (name: string, since: string, verdict: Verdict, tested = ""): Effect.Effect<void> =>
    Effect.ignore(sendReport(name, since, verdict, tested))

  /** Logs that an account left the rotation or is back, as the store replied to a report. */
  const logChange = (account: PooledAccount | undefined, { health }: Verdict, reply: ReadonlyArray<string>) => {
    const [state, count, delay] = reply
    if (account === undefined || state === undefined || state === "") return Effect.void
    if (state === "ready") {
      account.broughtBack()
      // The store counts 1 for an account that was out.
      if (count === "1") publishBack(notices, account)
      return logReturn(account)
    }
    const reason = health === undefined || !isFault(health) ? "" : account.reasonFor(health)
    return logSuspension(notices, account, state === "out" ? "out" : "cooling", reason, Number(delay), Number(count))
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

  store.listen((event) => {
    switch (event._tag) {
      case "login":
        for (const ended of logins.get(event.account) ?? []) ended()
        break
      case "due":
        if (trying.has(event.account)) break
        trying.add(event.account)
        fork(tryAgain(event.account))
        break
      case "quota": {
        const account = byName.get(event.account)
        if (account !== undefined) quotas.forget(account)
        break
      }
      case "restored":
        named = undefined
        registry.invalidate()
    }
  })
  const sharedBudgets = new SharedBudgets(store, config.now, shell.budgets)
  store.membership.bringsBack((data) =>
    Effect.suspend(() => {
      const made = Array.from(byName.values(), (account) => shell.madeTokens(account))
        .filter((tokens) => tokens !== undefined)
      return Effect.andThen(
        sharedBudgets.bringBack(data.at),
        Effect.forEach(made, (tokens) => tokens.restore(data), { discard: true, concurrency: restoresAtOnce })
      )
    })
  )

  /** The accounts that a request prefers, by the knowledge of this node: `mostPreferred` at most. */
  const preferredBy = ({ prefers, targets }: PlacementRequest): Claim["prefers"] => {
    const found: Array<Claim["prefers"][number]> = []
    for (const { isAccount, maker, prefersTarget } of prefers) {
      const { upstream } = maker
      if (targets?.some((target) => target.upstream === upstream) === false) continue
      const own = found.length
      for (const [name, account] of byName) {
        const { hash, organization } = account
        if (account.upstream !== upstream || found.length >= mostPreferred) continue
        const isSame = hash === maker.account
        if (!isSame && (isAccount || !isOfMaker(maker, { upstream, account: hash, organization }))) continue
        const entry = [upstream, name, prefersTarget] as const
        // The account itself comes before the others of its organisation.
        if (isSame) found.splice(own, 0, entry)
        else found.push(entry)
      }
    }
    return found
  }

  /** What a request may use of budgets, where an account or an upstream has one. */
  const budgetOf = ({ budget }: PlacementRequest) =>
    budget !== undefined && hasBudgets(config.now()) ? budget : undefined

  /** What a caller asks for; an error if no upstream can be asked. */
  const claimOf = (caller: Caller, options: PlacementRequest): Effect.Effect<Claim, GatewayError | NoGrant> =>
    Effect.suspend((): Effect.Effect<Claim, GatewayError | NoGrant> => {
      const { avoid, memory, patience, spread, stay, style, wait } = options
      const sticky = options.sticky?.isContinued === true ? options.sticky : undefined
      const { account_table, request_timeouts } = config.now()
      const upstreams = upstreamsOf(caller, options, config.now())
      const budget = budgetOf(options)
      const isBackground = caller._tag === "Managed" && quotas.isBackground(caller.key)
      const needsAt = (pool: string): string => {
        const models = (options.targets ?? []).filter(({ upstream }) => upstream === pool).map((target) => {
          const wait = modelLimits.waitFor(target)
          return {
            ...quotas.asked(pool, target.model),
            until: wait === 0 ? 0 : Math.ceil(storeNow() + wait),
            isFailed: isFailedTarget(options, target)
          }
        })
        return needsWords(models, budget?.sharesOf(pool, storeNow()), isBackground)
      }
      const at = (pool: string, request: string): ClaimTarget => ({ pool, request: request + needsAt(pool) })
      const claim = (targets: ReadonlyArray<ClaimTarget>, fallback: ReadonlyArray<ClaimTarget> = []): Claim => ({
        targets,
        fallback,
        spread,
        hold: upstreams.length > 1 ? wait : 0,
        patience: patience ?? request_timeouts.queue * 1_000,
        style: style.replaceAll(/\s/g, ""),
        sticky: sticky?.keys.join(" ") ?? "",
        stays: sticky?.prefersTarget ?? false,
        prefers: preferredBy(options),
        thread: memory?.isContinued === true ? memory.key() : "",
        isServed: (pool) => isServed(pool, options)
      })
      if (caller._tag === "Direct") {
        return Effect.succeed(claim(upstreams.map((pool) => ({ pool, request: "D" }))))
      }
      if (caller.target !== undefined) {
        const [account, ...others] = accountsNamed(account_table, caller.target)
        if (others.length > 0) return Effect.fail(ambiguousAccount(account_table, caller))
        const pinned = account?.upstream ?? upstreams[0]!
        if (account !== undefined && !upstreams.includes(pinned)) {
          return Effect.fail(otherUpstream(pinned, upstreams, options.model))
        }
        const name = names.get(account?.identity[0] ?? "")
        if (name === undefined) return Effect.fail({ _tag: "Unknown" } as const)
        return Effect.succeed(claim([at(pinned, `P:${name}`)]))
      }
      const able = upstreams.filter((name) => counts.has(name))
      if (able.length === 0) return Effect.fail({ _tag: "Unavailable" } as const)
      const avoided = Array.from(avoid, (key) => names.get(key)).filter((name) => name !== undefined).sort()
      const request = avoided.length === 0 ? "A" : `A:${avoided.join(",")}`
      const any = able.map((pool) => at(pool, request))
      // Staying on an account is a preference, unlike a pin.
      const preferred = stay === undefined ? undefined : names.get(stay)
      const pool = preferred === undefined ? undefined : byName.get(preferred)?.upstream
      return Effect.succeed(
        pool === undefined || !able.includes(pool) ? claim(any) : claim([at(pool, `P:${preferred}`)], any)
      )
    })

  /** Whether an upstream still has a model that a request asked for. */
  const isServed = (pool: string, { targets }: PlacementRequest): boolean => {
    const { route_table } = config.now()
    return targets === undefined ||
      targets.some(({ model, upstream }) => upstream === pool && servesModel(route_table, pool, model))
  }

  let digests: { readonly keys: ReadonlyArray<string>; readonly owners: ReadonlySet<string> } | undefined
  const isConfiguredKey = (owner: string): boolean => {
    const { keys } = config.now()
    if (digests?.keys !== keys) {
      digests = {
        keys,
        owners: new Set(keys.map((key) => keyDigest(key, (text) => hash("sha256", text))))
      }
    }
    return digests.owners.has(owner)
  }

  const release = (grant: Grant, { held, memory, seen, upstream, used }: Taken = nothingTaken) => {
    const left = memory?.next?.()
    const use = used?.(storeNow())
    const cleans = held !== undefined && cleanUp.canDelete(held)
    claims.end(
      grant,
      {
        seen,
        upstream,
        cleans,
        unclean: cleans && cleanUp.isUnclean(grant.account, held),
        quota: byName.get(grant.account)?.quota?.takeUnsent() ?? "",
        memory: left === undefined ? undefined : [memory!.key(), store.secrets.seal(threadsPlace, left)],
        used: use && usedFields(use)
      },
      (
        [, clean = "", state = "", count = "", delay = "", cooled = "", ...used]
      ) => {
        if (used.length > 0) sharedBudgets.saw(grant, byName.get(grant.account), used)
        if (cooled !== "") fork(logUpstream(grant.pool, upstream?.verdict, cooled))
        if (held === undefined) return
        cleanUp.released(grant.account, held, clean)
        if (state !== "" && seen !== undefined) {
          const health = seen.verdict === "ok" ? undefined : seen.verdict
          fork(logChange(byName.get(grant.account), { health, retryAfter: undefined }, [state, count, delay]))
        }
      }
    )
  }

  const noteAnswered = (grant: Grant, sticky: Stickiness) =>
    Effect.map(claims.answered(grant, sticky), (met) => {
      if (met === "hit") stickyHits++
      else if (met === "move") stickyMoves++
    })

  /** Logs that an upstream is left out or back, as the store replied to a report. */
  const logUpstream = (upstream: string, verdict: string | undefined, cooled: string) =>
    cooled === "back"
      ? logBack(notices, upstream)
      : logCooled(notices, upstream, verdict === "connection" ? verdict : "trouble", Number(cooled))

  const claimFor = (
    caller: Caller,
    options: PlacementRequest,
    restore: Restore
  ): Effect.Effect<Grant, GatewayError | NoGrant> =>
    Effect.flatMap(claimOf(caller, options), (claim) => {
      const began = now()
      const first = claims.claim(claim, restore)
      if (claim.fallback.length === 0) return first
      return Effect.catchIf(
        first,
        (error) => error._tag !== "Late" && error._tag !== "StoreUnavailable",
        () => {
          const patience = Math.max(0, claim.patience - (now() - began))
          return claims.claim({ ...claim, targets: claim.fallback, fallback: [], patience }, restore)
        }
      )
    })

  /** The error of a request that gets no slot. */
  const noGrantError = (
    error: NoGrant | GatewayError,
    caller: Caller,
    options: PlacementRequest,
    began: number
  ): Effect.Effect<GatewayError> => {
    if (error._tag === "GatewayError") return Effect.succeed(error)
    if (error._tag === "StoreUnavailable") return Effect.succeed(storeUnavailable())
    if (error._tag === "Cooling" && budgetOf(options) !== undefined) {
      return Effect.succeed(overBudget(((error.until < never ? error.until : error.until - never) - now()) / 1_000))
    }
    if (error._tag !== "Unavailable") return Effect.succeed(refusalError(error, now(), undefined, now() - began))
    const upstreams = upstreamsOf(caller, options, config.now())
    const disabled = disabledUpstreams(config.now().upstreams, upstreams, options.model)
    if (disabled !== undefined) return Effect.succeed(disabled)
    return Effect.map(view.outage(upstreams, now), (found) => refusalError(error, now(), found))
  }

  const lease: (restore: Restore, caller: Caller, options: PlacementRequest) => Effect.Effect<
    Lease,
    GatewayError,
    Scope.Scope
  > = Effect.fnUntraced(function*(restore, caller, options) {
    if (!store.isUp()) return yield* storeUnavailable()
    const scope = yield* Effect.scope
    yield* currentDrivers
    const began = now()
    const asked = store.membership.revision()
    const budget = budgetOf(options)
    const grant = yield* Effect.catch(
      claimFor(caller, options, restore),
      (error) => Effect.flatMap(noGrantError(error, caller, options, began), Effect.fail)
    )
    const taken: Taken = { ...nothingTaken, memory: options.memory }
    if (budget !== undefined && grant.account !== "") taken.used = (at) => budget.used(at)
    yield* Scope.addFinalizer(scope, Effect.sync(() => release(grant, taken)))
    // The scope closed during the wait: the finalizer has run already.
    if (scope.state._tag === "Closed") return yield* Effect.interrupt
    // The grant may be of a configuration that this node has not received yet.
    if (grant.revision > store.membership.revision()) yield* restore(reach(grant.revision))
    if (store.membership.revision() !== asked) {
      // The key may have been removed while its request waited. A caller within the process has no key.
      if (caller._tag === "Managed" && caller.key !== undefined && !isConfiguredKey(caller.owner)) {
        release(grant)
        return yield* notAKey
      }
      // A caller's own token may have become a key, which must not go upstream.
      if (caller._tag === "Direct" && isConfiguredKey(caller.owner)) {
        release(grant)
        return yield* gatewayError("store_unavailable", "This key was created just now. Retry.", {
          retryAfter: 1
        })
      }
    }
    if (grant.cleaning) yield* restore(cleanUp.awaitDeletion(grant.account))
    // Another upstream may have been configured during the wait.
    const drivers = yield* currentDrivers
    const account = grant.account === "" ? undefined : byName.get(grant.account)
    const driver = account === undefined ? drivers.get(grant.pool) : account.driverIn(drivers)
    if (driver === undefined || (grant.account !== "" && account === undefined)) {
      release(grant)
      // The store already has the change that removed the account, so the next grant names another one.
      const patience = (options.patience ?? config.now().request_timeouts.queue * 1_000) - (now() - began)
      const isCurrent = grant.revision <= store.membership.revision()
      if (
        account === undefined && caller._tag === "Managed" && caller.target === undefined && isCurrent && patience > 0
      ) {
        return yield* lease(restore, caller, { ...options, patience })
      }
      return yield* gatewayError("no_account_available", "The account was removed while the request waited", {
        retryAfter: unknownRetryAfter
      })
    }
    if (budget !== undefined && account !== undefined && taken.used !== undefined) {
      budget.isStrict = false
      for (const limits of budgetsOf(account, grant.pool, config.now())) {
        const share = limits.length === 0 ? undefined : budget.shareOf(grant.pool, limits, storeNow())
        if (share instanceof GatewayError) return yield* share
        if (share?.strict !== undefined) budget.isStrict = true
      }
    }
    if (account !== undefined) {
      quotas.received(account, grant.quota)
      tokensOf(account, driver).setCurrent(grant.token)
    }
    if (options.memory !== undefined) {
      options.memory.last = grant.memory === "" ? undefined : store.secrets.open(threadsPlace, grant.memory)
    }
    const held = taken.held = heldBy(caller, grant.pool, driver)
    const models = options.targets?.filter(({ upstream }) => upstream === grant.pool)
    return shell.leaseOf(
      account,
      models?.[Math.max(0, grant.model - 1)]?.model,
      held,
      now() - began,
      (health, retryAfter, fault) =>
        Effect.flatMap(Random.next, (random) => {
          // Only what has answered is preferred for the next turn, which may come to another node as soon as this one has ended.
          if (health === undefined && options.sticky !== undefined && !taken.isNoted) {
            taken.isNoted = true
            fork(noteAnswered(grant, options.sticky))
          }
          if (account === undefined || byName.get(grant.account) !== account) return Effect.void
          taken.seen = accountReport(grant.account, grant.epoch, { health, retryAfter }, random) ?? taken.seen
          // A failure of the account says nothing about the upstream, and neither does its success after one.
          if (health !== undefined && fault === undefined) return Effect.void
          const hadEvent = taken.upstream?.verdict === "ok"
          // An event ends a row of failures, also if the reply breaks off later.
          if (hadEvent) return Effect.void
          taken.upstream = {
            verdict: fault ?? "ok",
            coolings: grant.coolings,
            request: options.request || grant.ticket,
            retry: fault && retryAfter,
            random: jitter * random
          }
          if (fault !== undefined || !grant.probes) return Effect.void
          // The others skip the upstream until the first event of its probe.
          return Effect.flatMap(claims.works(grant), (isBack) => isBack ? logBack(notices, grant.pool) : Effect.void)
        })
    )
  })

  const statesOf: PoolCore<SharedTokens>["statesOf"] = (accounts) =>
    Effect.map(
      Effect.orElseSucceed(view.factsOf(accounts.map(nameOf)), () => new Map<string, SharedFacts>()),
      (facts) =>
        accounts.map((account) => {
          const known = facts.get(nameOf(account))
          quotas.received(account, known?.quota ?? "")
          return view.stateOf(account, known)
        })
    )

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
    statesOf,
    whyNot: (account) => {
      if (account.account?.disabled === true) return "disabled"
      if (sharedBudgets.isAtBudget(account, nameOf(account), storeNow())) return "budget"
      const isUsedUp = quotas.windowsOf(account).some(({ model, status }) => model === null && status === "exhausted")
      return isUsedUp ? "quota" : "priority"
    },
    // The store knows it, and a request asks the store for nothing but its grant.
    hindrance: () => undefined,
    queue: view.queue,
    upstreams: view.upstreams,
    setTestStatus: (account, tested) => {
      const verdict: Verdict = { health: tested === "ok" ? undefined : "none", retryAfter: undefined }
      return report(nameOf(account), "always", verdict, tested)
    },
    watch: (pool) => (watch) => pollPool(pool, watch),
    metrics: Effect.map(view.status(false), (seen) => {
      const [cooling, out] = [countOf(seen, "cooling"), countOf(seen, "out")]
      return {
        inUse: claims.inUse(),
        waiting: claims.waiting(),
        accounts: { ready: byName.size === 0 ? 0 : countOf(seen, "total") - cooling - out, cooling, out, draining: 0 },
        stickyHits,
        stickyMoves,
        ...cleanUp.counts()
      }
    })
  }
})

/** Makes the pool; the scope ends everything that it does in the background. */
export const makeSharedPool: Effect.Effect<
  MadePool,
  never,
  ConfigStore | SharedRevision | Upstreams | Store | Scope.Scope
> = makePoolOver(makeSharedCore)
