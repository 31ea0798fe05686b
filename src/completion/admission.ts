/**
 * A request before its key's limits: whether its model is allowed and whether it is admitted, noted in its record.
 */
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Caller } from "../accounts/Accounts.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import type { KeyLimits } from "../usage/KeyLimits.ts"
import { directKey, embeddedKey } from "../usage/UsageEntry.ts"
import type { RequestStats } from "./RequestStats.ts"
import { usedBy } from "./UsageRecorder.ts"

/** The key that a caller's usage is counted for. */
export const keyOf = (caller: Caller): string => caller._tag === "Direct" ? directKey : caller.key ?? embeddedKey

/** What is asked for, and by whom. */
export interface Asked {
  readonly caller: Caller
  readonly model: Model
  readonly stats: RequestStats
}

/**
 * Does what an admitted request is for, or fails with the error with which it is refused. The scope holds what is reserved.
 * Admission costs about a microsecond where the key has no limit of tokens; where it has one, `promptTokens` is called.
 */
export const admitRequest = <A, E, R>(
  limits: KeyLimits["Service"],
  { caller, model, stats }: Asked,
  promptTokens: () => number,
  then: () => Effect.Effect<A, E, R>
): Effect.Effect<A, E | GatewayError, R | Scope.Scope> => {
  const key = keyOf(caller)
  const notAllowed = limits.refuseModel(key, model)
  if (notAllowed !== undefined) return Effect.fail(notAllowed)
  return Effect.matchEffect(limits.admit({ key, promptTokens, used: () => usedBy(stats) }), {
    onFailure: ({ error, rateLimits }) => {
      stats.rateLimits = rateLimits
      return Effect.fail(error)
    },
    onSuccess: ({ at, rateLimits }) => {
      stats.rateLimits = rateLimits
      stats.admittedAt = at
      return then()
    }
  })
}
