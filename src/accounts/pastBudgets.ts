/**
 * Leases past the accounts and upstreams whose budgets have too little left for a try.
 *
 * The pool grants no account without anything left. One with too little for this try is granted once, with the word that it is over; then the
 * lease goes back, and the request goes on to its other accounts and upstreams.
 */
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Caller, Lease, LeaseOptions } from "./Lease.ts"
import { overBudget } from "./refusals.ts"

/** Leases that one request gives back at most. */
const mostReturned = 64

type LeaseOf = (caller: Caller, options: LeaseOptions) => Effect.Effect<Lease, GatewayError, Scope.Scope>

/** Makes the lease of a request whose tries have budgets. `upstreamsOf` are the upstreams that it may go to. */
export const leasePastBudgets = (
  lease: LeaseOf,
  caller: Caller,
  asked: LeaseOptions,
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
          const { account, over, upstream } = granted
          if (over === undefined) return Effect.succeed(granted)
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
