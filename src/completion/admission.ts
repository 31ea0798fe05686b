/**
 * Admission of a request by the limits of its key: the concurrent requests from its head on, and after its body the allowed models and the
 * limits of requests, tokens and cost.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Caller } from "../accounts/Accounts.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Route } from "../domain/routes.ts"
import { directKey, embeddedKey } from "../domain/usageNames.ts"
import { type Admitted, notCounted, type Reserved } from "../usage/Admission.ts"
import type { AdmissionRequest, KeyLimits } from "../usage/KeyLimits.ts"
import type { Request } from "./Request.ts"
import type { RequestStats } from "./RequestStats.ts"
import { usedBy } from "./UsageRecorder.ts"

/** Id of the key that the caller's usage counts for. */
export const keyOf = (caller: Caller): string => caller._tag === "Direct" ? directKey : caller.key ?? embeddedKey

/** The share of a request that has no tokens and costs nothing. */
const free = { model: undefined, promptTokens: () => 0 }

/**
 * Counts a request among the running ones of its key, or fails with the refusal. `isArriving` says whether its body is still to come:
 * a request that has arrived is admitted immediately. Returns its share, if it has one.
 */
export const enterRequest = (
  limits: KeyLimits["Service"],
  key: string,
  stats: RequestStats,
  isArriving: Effect.Effect<boolean>
): Effect.Effect<Reserved | undefined, GatewayError, Scope.Scope> =>
  Effect.flatMap(isArriving, (arrives) =>
    arrives
      ? Effect.mapError(limits.enter(key), ({ error, rateLimits }) => {
        stats.rateLimits = rateLimits
        return error
      })
      : Effect.undefined)

/** Refuses a request that asks for nothing yet, of a key whose limits are used up (`Entrance.look`). */
export const admitUncounted = (
  limits: KeyLimits["Service"],
  caller: Caller,
  { entered, followers, stats }: Request
): Effect.Effect<void, GatewayError, Scope.Scope> => {
  followers.usage = undefined
  followers.recording?.setAside()
  return Effect.mapError(
    limits.admit({
      key: keyOf(caller),
      bounds: undefined,
      takesFallback: false,
      ...free,
      used: () => notCounted,
      entered
    }),
    ({ error, rateLimits }) => {
      stats.rateLimits = rateLimits
      return error
    }
  )
}

/** A request to admit. */
export interface Asked {
  readonly caller: Caller
  readonly model: Route
  readonly request: Request
  /** The fields of a form by which servers choose another model, as far as it has arrived; those of the request without it. */
  readonly choosing?: ReadonlyArray<string> | undefined
}

/**
 * Runs `then` for an admitted request, or fails with the refusal. The scope holds the reserved limits. `promptTokens` is called
 * only if the key has a limit of tokens or cost; without one, admission takes about a microsecond. A request for which it is
 * `undefined` has no tokens and costs nothing.
 */
export const admitRequest = <A, E, R>(
  limits: KeyLimits["Service"],
  { caller, choosing, model, request }: Asked,
  promptTokens: (() => number) | undefined,
  then: (admitted: Admitted) => Effect.Effect<A, E, R>,
  more?: Pick<AdmissionRequest, "bounds" | "takesFallback">
): Effect.Effect<A, E | GatewayError, R | Scope.Scope> => {
  const key = keyOf(caller)
  const { entered, stats } = request
  const chosenBy = choosing ?? request.choosing
  const notAllowed = limits.refuseModel(key, model) ??
    (chosenBy.length === 0 ? undefined : limits.refuseChoosing(key, model, chosenBy))
  if (notAllowed !== undefined) return Effect.fail(notAllowed)
  const used = () => usedBy(stats, limits.pricing())
  if (promptTokens === undefined) stats.cost = 0n
  const share = promptTokens === undefined ? free : { model, promptTokens }
  return Effect.matchEffect(
    limits.admit({ key, bounds: undefined, takesFallback: false, ...share, ...more, used, entered }),
    {
      onFailure: ({ error, rateLimits }) => {
        stats.rateLimits = rateLimits
        return Effect.fail(error)
      },
      onSuccess: (admitted) => {
        const { fallback } = admitted
        stats.rateLimits = admitted.rateLimits
        stats.admittedAt = admitted.at
        stats.reserved = admitted.strict
        if (fallback !== undefined) {
          const { limit: { kind, window }, model: { id } } = fallback
          stats.model = id
          stats.fallback = { model: id, limit: `${window} ${kind}` }
        }
        return then(admitted)
      }
    }
  )
}
