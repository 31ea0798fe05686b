/**
 * Leases past the accounts that are out for the model of a request (`quota.ts`).
 *
 * The pool avoids such accounts. It grants one only while no other account is in rotation: then the lease goes back, and the request goes
 * on to its other upstreams, or waits until the first account serves the model again.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { ConfigStore } from "../config/ConfigStore.ts"
import { countEnabled } from "../config/upstreamAccounts.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { AccountFacts, Caller, Lease, LeaseOptions, LeaseTarget, ModelLimits } from "./Lease.ts"
import type { PooledAccount } from "./PooledAccount.ts"
import type { Quotas } from "./quota.ts"
import { refusalError } from "./refusals.ts"

/** Leases that one request gives back at most. */
const mostReturned = 64

/** Accounts of an upstream whose recovery is looked at. */
const mostSeen = 500

/** What the leases need of the pool. */
interface PausedModelsOptions {
  readonly lease: (caller: Caller, options: LeaseOptions) => Effect.Effect<Lease, GatewayError, Scope.Scope>
  readonly statesOf: (
    accounts: ReadonlyArray<PooledAccount>
  ) => Effect.Effect<ReadonlyArray<Pick<AccountFacts, "disabled" | "health" | "recovery">>>
  /** The accounts of an upstream. */
  readonly accountsOf: (upstream: string) => ReadonlyArray<PooledAccount>
  readonly quotas: Quotas
  readonly pass: ModelLimits["pass"]
  readonly config: ConfigStore["Service"]
  /** Monotonic milliseconds. */
  readonly now: () => number
}

/** Makes the lease of a request that names its targets. */
export const makeLeasePastPauses = (options: PausedModelsOptions) => {
  const { accountsOf, config, lease, now, pass, quotas, statesOf } = options

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

  return (caller: Caller, asked: LeaseOptions, targets: ReadonlyArray<LeaseTarget>, isBackground: boolean) =>
    Effect.flatMap(Effect.scope, (scope): Effect.Effect<Lease, GatewayError> => {
      const { patience = config.now().request_timeouts.queue * 1_000 } = asked
      const began = now()
      const isPinned = caller._tag === "Managed" && caller.target !== undefined
      const left = () => Math.max(0, patience - (now() - began))
      let returned = 0
      let waited = 0

      /** Waits for the first upstream that serves the request again. */
      const wait = (waits: ReadonlyMap<string, number>, error?: GatewayError): Effect.Effect<Lease, GatewayError> => {
        const millis = Math.min(...waits.values())
        if (!Number.isFinite(millis)) {
          return Effect.fail(error ?? refusalError({ _tag: "Unavailable" }, now()))
        }
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
      const attempt = (waits: ReadonlyMap<string, number>): Effect.Effect<Lease, GatewayError> => {
        const out = quotas.out(targets, isBackground)
        const blocked = new Map(waits)
        if (!isPinned) {
          for (const [upstream, times] of Map.groupBy(out, ([account]) => account.upstream)) {
            const enabled = Math.max(1, countEnabled(config.now().accounts, upstream))
            const counted = times.filter(([{ account }]) => account?.disabled !== true)
            if (counted.length >= enabled) blocked.set(upstream, Math.min(...counted.map(([, millis]) => millis)))
          }
        }
        const open = targets.filter(({ upstream }) => !blocked.has(upstream))
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
            onSuccess: (granted) => {
              const { upstream } = granted
              const ofUpstream = open.filter((target) => target.upstream === upstream)
              const waits = ofUpstream.map((target) => quotas.waitFor(granted.account, target, isBackground))
              const millis = Math.min(...waits)
              if (waits.length === 0 || millis <= 0) {
                for (const target of ofUpstream) quotas.tries(granted.account, target)
                return Effect.succeed(waited === 0 ? granted : { ...granted, waited: granted.waited + waited })
              }
              returned++
              const isNew = !avoid.has(granted.account ?? "")
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
}
