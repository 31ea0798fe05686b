/**
 * A request before its key's limits: whether its model is allowed and whether it is admitted, noted in its record.
 */
import type { Caller } from "../accounts/Accounts.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import type { Model } from "../domain/models.ts"
import { type KeyLimits, Refused } from "../usage/KeyLimits.ts"
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
 * Admits a request, which its record then holds until it is over, or gives the error with which it is refused. At once: it
 * costs about a microsecond where the key has no limit of tokens; where it has one, `promptTokens` is called.
 */
export const admitRequest = (
  limits: KeyLimits["Service"],
  { caller, model, stats }: Asked,
  promptTokens: () => number
): GatewayError | undefined => {
  const key = keyOf(caller)
  const notAllowed = limits.refuseModel(key, model)
  if (notAllowed !== undefined) return notAllowed
  const admitted = limits.admitUnsafe({ key, promptTokens })
  stats.rateLimits = admitted.rateLimits
  if (admitted instanceof Refused) return admitted.error
  stats.admission = admitted
  return undefined
}
