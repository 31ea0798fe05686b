/** What is reported of accounts, as the scripts take it (`health.lua`). */
import type { AccountHealth } from "../../domain/classifyUpstreamFailure.ts"
import { isFault } from "../accountHealth.ts"
import { backOff, jitter } from "../backOff.ts"

/** What an attempt, a login or a try showed; `undefined` in `health`: it worked. */
export interface Verdict {
  readonly health: AccountHealth | undefined
  /** Seconds. */
  readonly retryAfter: number | undefined
}

/** Nothing to report. */
export const noVerdict: ReadonlyArray<string> = ["", "", "", "", "", "", "", ""]

/**
 * The arguments of a report. `since`: the account's epoch when the attempt began; `always`, where it counts in any case;
 * `login` and `try`, where it is the outcome of one. `random` is in [0, 1).
 */
export const verdictArguments = (
  name: string,
  since: string,
  { health, retryAfter }: Verdict,
  random: number
): ReadonlyArray<string> => {
  if (health === undefined) return [name, since, "ok", "", "", "", "", ""]
  if (!isFault(health)) {
    return since === "try"
      ? [name, since, "none", "", "", "", "", String(jitter * random)]
      : noVerdict
  }
  const { first, longest, state } = backOff[health]
  const retry = retryAfter === undefined ? "" : String(retryAfter)
  return [name, since, health, state, String(first), String(longest), retry, String(jitter * random)]
}
