/**
 * Leases of the pool that nodes share, past accounts that are out for a request alone: with too little budget left for it, or for the model
 * that it asks for (`quota.ts`, `ModelLimits.ts`).
 *
 * The pool of one process grants no such account (`placement/needs.ts`). The scripts of the store do not know yet what a request needs: they
 * grant such an account while no other one is in rotation. Then the lease goes back here, and the request goes on to its other accounts and
 * upstreams, or waits until the first account serves the model again. This file is all of that, and goes when the scripts check it.
 */
import type { Clock } from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Shutdown } from "../../config/clock/Shutdown.ts"
import type { ConfigStore } from "../../config/ConfigStore.ts"
import { countEnabled } from "../../config/upstreamAccounts.ts"
import { type GatewayError, gatewayError } from "../../domain/GatewayError.ts"
import { monotonicMillis } from "../../domain/time.ts"
import { hasBudgets } from "../budgets.ts"
import type { AccountFacts, Caller, Lease, LeaseTarget, PlacementRequest } from "../Lease.ts"
import type { ModelLimits } from "../ModelLimits.ts"
import { upstreamsOf } from "../pool.ts"
import type { PooledAccount } from "../PooledAccount.ts"
import type { Quotas } from "../quota.ts"
import { overBudget, refusalError, shuttingDown } from "../refusals.ts"

/** A budget of a granted account, or of its upstream, has too little left for the try. */
export interface Over {
  readonly _tag: "Over"
  /** Until the window ends. */
  readonly seconds: number
  readonly isOfUpstream: boolean
}

/** A lease of the store. One that is `over` has reserved nothing. */
export interface StoreLease {
  readonly lease: Lease
  readonly over: Over | undefined
}

type LeaseOf = (caller: Caller, options: PlacementRequest) => Effect.Effect<StoreLease, GatewayError, Scope.Scope>

/** Leases that one request gives back at most. */
const mostReturned = 64

/** Accounts of an upstream whose recovery is looked at. */
const mostSeen = 500

/** The lease of a request whose tries have budgets. `upstreamsOf` are the upstreams that it may go to. */
const leasePastBudgets = (
  lease: LeaseOf,
  caller: Caller,
  asked: PlacementRequest,
  upstreamOf: () => ReadonlyArray<string>
): Effect.Effect<Lease, GatewayError, Scope.Scope> =>
  Effect.flatMap(Effect.scope, (scope) => {
    const avoid = new Set(asked.avoid)
    const closed = new Set<string>()
    let soonest = Number.POSITIVE_INFINITY
    let returned = 0

    /** The refusal of a request that has given leases back; `error` comes from the accounts without them. */
    const refused = (error?: GatewayError): GatewayError =>
      error !== undefined && (returned === 0 || error.code !== "no_account_available") ? error : overBudget(soonest)

    const attempt = (): Effect.Effect<Lease, GatewayError> => {
      const { targets } = asked
      const open = targets?.filter(({ upstream }) => !closed.has(upstream))
      const isEmpty = open === undefined ? upstreamOf().every((name) => closed.has(name)) : open.length === 0
      if (isEmpty && closed.size > 0) return Effect.fail(refused())
      const inner = Scope.forkUnsafe(scope)
      const options = returned === 0
        ? asked
        : { ...asked, ...(open === undefined ? {} : { targets: open }), avoid, stay: undefined }
      return Effect.matchEffect(Scope.provide(lease(caller, options), inner), {
        onFailure: (error) =>
          Effect.fail(
            error.code === "upstream_rate_limited"
              ? overBudget(Math.min(soonest, error.retryAfter ?? 1))
              : refused(error)
          ),
        onSuccess: (granted) => {
          const { lease: { account: { key: account } = {}, upstream }, over } = granted
          if (over === undefined) return Effect.succeed(granted.lease)
          soonest = Math.min(soonest, over.seconds)
          returned++
          // An account that was to be avoided is granted only while no other one is in rotation.
          const isKnown = account !== undefined && avoid.has(account)
          if (over.isOfUpstream || isKnown || returned >= mostReturned) closed.add(upstream)
          if (account !== undefined) avoid.add(account)
          const isPinned = caller._tag === "Managed" && caller.target !== undefined
          return Effect.flatMap(
            Scope.close(inner, Exit.void),
            () => isPinned || returned >= 2 * mostReturned ? Effect.fail(refused()) : attempt()
          )
        }
      })
    }
    return attempt()
  })

/** What the leases need of the pool. */
interface PastLimitsOptions {
  readonly lease: LeaseOf
  readonly statesOf: (
    accounts: ReadonlyArray<PooledAccount>
  ) => Effect.Effect<ReadonlyArray<Pick<AccountFacts, "disabled" | "health" | "recovery">>>
  /** The accounts of an upstream. */
  readonly accountsOf: (upstream: string) => ReadonlyArray<PooledAccount>
  readonly quotas: Quotas
  readonly modelLimits: ModelLimits
  readonly config: ConfigStore["Service"]
  readonly clock: Clock
  readonly shutdown: Shutdown
}

const limitedUntil = (millis: number): GatewayError =>
  gatewayError("upstream_rate_limited", "The upstream limits the rate of requests for the model", {
    retryAfter: Math.max(1, Math.ceil(millis / 1_000))
  })

/** Makes the lease of requests with keys. */
export const makeLeasePastLimits = (options: PastLimitsOptions) => {
  const { accountsOf, clock, config, lease, modelLimits, quotas, shutdown, statesOf } = options
  const now = () => monotonicMillis(clock)
  let waiting = 0

  /** Lets milliseconds pass, for at most `most` requests. */
  const pass = (millis: number, patience: number, most: number): Effect.Effect<void, GatewayError> =>
    Effect.suspend(() => {
      if (millis > patience || waiting >= most) return Effect.fail(limitedUntil(millis))
      waiting++
      const closing = Deferred.makeUnsafe<never, GatewayError>()
      const close = () => Deferred.doneUnsafe(closing, Effect.fail(shuttingDown))
      const unwatch = shutdown.watch(close)
      if (shutdown.isOver) close()
      return Effect.timeoutOrElse(Deferred.await(closing), { duration: millis, orElse: () => Effect.void }).pipe(
        Effect.ensuring(Effect.sync(() => {
          waiting--
          unwatch()
        }))
      )
    })

  /** Milliseconds until the first account of an upstream is in rotation and serves one of the targets; infinity if that is unknown. */
  const soonest = (
    upstream: string,
    targets: ReadonlyArray<LeaseTarget>,
    isBackground: boolean
  ): Effect.Effect<number> => {
    const accounts = accountsOf(upstream).slice(0, mostSeen)
    return Effect.map(statesOf(accounts), (states) => {
      const waits = accounts.map((account, i) => {
        const { disabled, health, recovery = 0 } = states[i]!
        return disabled || health === "out"
          ? Number.POSITIVE_INFINITY
          : Math.max(recovery, quotas.waitAt(account, targets, isBackground))
      })
      return Math.min(Number.POSITIVE_INFINITY, ...waits)
    })
  }

  /** Lets a pause pass. An account test that ends one ends the wait too. */
  const passes = (millis: number, patience: number, most: number): Effect.Effect<void, GatewayError> => {
    const forgotten = Effect.callback<void>((resume) => {
      const unwatch = quotas.watch(() => resume(Effect.void))
      return Effect.sync(unwatch)
    })
    return Effect.raceFirst(pass(millis, patience, most), forgotten)
  }

  const leasePastPauses = (
    caller: Caller,
    asked: PlacementRequest,
    targets: ReadonlyArray<LeaseTarget>,
    isBackground: boolean
  ): Effect.Effect<StoreLease, GatewayError, Scope.Scope> =>
    Effect.flatMap(Effect.scope, (scope): Effect.Effect<StoreLease, GatewayError> => {
      const { patience = config.now().request_timeouts.queue * 1_000 } = asked
      const began = now()
      const isPinned = caller._tag === "Managed" && caller.target !== undefined
      const left = () => Math.max(0, patience - (now() - began))
      let returned = 0
      let waited = 0

      /** Waits for the first upstream that serves the request again. */
      const wait = (
        waits: ReadonlyMap<string, number>,
        error?: GatewayError
      ): Effect.Effect<StoreLease, GatewayError> => {
        const millis = Math.min(...waits.values())
        if (!Number.isFinite(millis)) {
          return Effect.fail(error ?? refusalError({ _tag: "Unavailable" }, now()))
        }
        // What keeps an upstream with an account in rotation away is not known here: its budget, or a full queue.
        if (millis <= 0 && error !== undefined) return Effect.fail(error)
        if (millis > left() || returned >= mostReturned) {
          return Effect.fail(refusalError({ _tag: "Cooling", until: now() + millis }, now()))
        }
        const [first = ""] = waits.keys()
        const since = now()
        return Effect.flatMap(
          passes(millis, left(), config.now().upstreams.get(first)?.limits.queue ?? 0),
          () => {
            waited += now() - since
            return attempt(new Map())
          }
        )
      }

      /** Leases at the upstreams that are not known to be out; `waits` has those that are, with the milliseconds. */
      const attempt = (waits: ReadonlyMap<string, number>): Effect.Effect<StoreLease, GatewayError> => {
        const out = quotas.out(targets, isBackground)
        const blocked = new Map(waits)
        if (!isPinned) {
          for (const [upstream, times] of Map.groupBy(out, ([account]) => account.upstream)) {
            const enabled = Math.max(1, countEnabled(config.now().accounts, upstream))
            const counted = times.filter(([{ account }]) => account?.disabled !== true)
            if (counted.length >= enabled) blocked.set(upstream, Math.min(...counted.map(([, millis]) => millis)))
          }
        }
        const taken = targets.filter((target) => modelLimits.waitFor(target) === 0)
        for (const { upstream } of targets) {
          if (taken.some((target) => target.upstream === upstream)) continue
          const limited = targets.filter((target) => target.upstream === upstream)
          blocked.set(upstream, Math.min(...limited.map((target) => modelLimits.waitFor(target))))
        }
        const open = taken.filter(({ upstream }) => !blocked.has(upstream))
        if (open.length === 0) return wait(blocked)
        const avoid = new Set([...asked.avoid ?? [], ...Array.from(out.keys(), ({ key }) => key)])
        const inner = Scope.forkUnsafe(scope)
        return Effect.matchEffect(
          Scope.provide(lease(caller, { ...asked, targets: open, avoid, patience: left() }), inner),
          {
            onFailure: (error) => {
              const isLimited = error.code === "upstream_rate_limited" || error.code === "no_account_available"
              if (!isLimited || isPinned || (out.size === 0 && blocked.size === 0)) return Effect.fail(error)
              const names = new Set(open.map(({ upstream }) => upstream))
              const found = Effect.forEach(
                names,
                (name) => Effect.map(soonest(name, open, isBackground), (at) => [name, at] as const)
              )
              return Effect.flatMap(found, (found) => wait(new Map([...blocked, ...found]), error))
            },
            onSuccess: ({ lease, over }) => {
              const { account, upstream } = lease
              const ofUpstream = open.filter((target) => target.upstream === upstream)
              const waits = ofUpstream.map((target) => quotas.waitFor(account?.key, target, isBackground))
              const millis = Math.min(...waits)
              if (waits.length === 0 || millis <= 0) {
                for (const target of ofUpstream) quotas.tries(account?.key, target)
                const model = ofUpstream.find((_, place) => waits[place]! <= 0)?.model
                return Effect.succeed({ lease: { ...lease, model, waited: lease.waited + waited }, over })
              }
              returned++
              const isNew = !avoid.has(account?.key ?? "")
              return Effect.flatMap(Scope.close(inner, Exit.void), () => {
                if (isPinned) return wait(new Map([[upstream, millis]]))
                if (isNew && returned < mostReturned) return attempt(blocked)
                return Effect.flatMap(
                  soonest(upstream, ofUpstream, isBackground),
                  (at) => attempt(new Map([...blocked, [upstream, Math.max(1, Math.min(at, millis))]]))
                )
              })
            }
          }
        )
      }
      return attempt(new Map())
    })

  return (caller: Caller, asked: PlacementRequest): Effect.Effect<Lease, GatewayError, Scope.Scope> => {
    const pastPauses: LeaseOf = (caller, options) => {
      const { targets } = options
      const isBackground = caller._tag === "Managed" && quotas.isBackground(caller.key)
      return targets === undefined ? lease(caller, options) : leasePastPauses(caller, options, targets, isBackground)
    }
    return asked.budget !== undefined && hasBudgets(config.now())
      ? leasePastBudgets(pastPauses, caller, asked, () => upstreamsOf(caller, asked, config.now()))
      : Effect.map(pastPauses(caller, asked), ({ lease }) => lease)
  }
}
