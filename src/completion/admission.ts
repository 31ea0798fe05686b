/**
 * A request before its key's limits: whether its model is allowed and whether it is admitted, noted in its record.
 */
import * as Effect from "effect/Effect"
import type { Caller } from "../accounts/Accounts.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import { Asking, type KeyLimits, Refused } from "../usage/KeyLimits.ts"
import { directKey, embeddedKey } from "../usage/UsageEntry.ts"
import type { RequestStats } from "./RequestStats.ts"

/** The key that a caller's usage is counted for. */
export const keyOf = (caller: Caller): string => caller._tag === "Direct" ? directKey : caller.key ?? embeddedKey

/** What is asked for, and by whom. */
export interface Asked {
  readonly caller: Caller
  readonly model: Model
  readonly stats: RequestStats
}

/**
 * Admits a request, which its record then holds until it is over, or fails with the error with which it is refused. At once
 * unless other nodes are to be asked: it costs about a microsecond where the key has no limit of tokens; where it has one,
 * `promptTokens` is called.
 */
export const admitRequest = (
  limits: KeyLimits["Service"],
  { caller, model, stats }: Asked,
  promptTokens: () => number
): Effect.Effect<void, GatewayError> => {
  const key = keyOf(caller)
  const notAllowed = limits.refuseModel(key, model)
  if (notAllowed !== undefined) return Effect.fail(notAllowed)
  const admitted = limits.admitUnsafe({ key, promptTokens })
  if (admitted instanceof Refused) {
    stats.rateLimits = admitted.rateLimits
    return Effect.fail(admitted.error)
  }
  if (admitted instanceof Asking) {
    // From now on: whatever becomes of the question, the end of the record settles it.
    stats.admission = admitted.admission
    return Effect.flatMap(admitted.answer, (refused) => {
      stats.rateLimits = refused === undefined ? admitted.admission.rateLimits : refused.rateLimits
      return refused === undefined ? Effect.void : Effect.fail(refused.error)
    })
  }
  stats.rateLimits = admitted.rateLimits
  stats.admission = admitted
  return Effect.void
}
