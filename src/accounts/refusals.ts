/** The pool's refusals as callers see them (behaviour "Errors" and "The pool"). */
import { type GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import type { Refusal } from "./PoolState.ts"

/** Seconds after which a client may try a busy pool again: slots come free all the time. */
const busyRetryAfter = 2

const inSeconds = (milliseconds: number): number => Math.max(1, Math.ceil(milliseconds / 1_000))

/** A request that the pool cannot serve. `now` is on the clock of `Refusal.until`. */
export const refusalError = (refusal: Refusal, now: number): GatewayError => {
  switch (refusal._tag) {
    case "Full":
      return gatewayError("rate_limit_exceeded", "All slots are in use and the queue is full", {
        retryAfter: busyRetryAfter
      })
    case "Late":
      return gatewayError("rate_limit_exceeded", "No slot came free in time", { retryAfter: busyRetryAfter })
    case "Cooling":
      return gatewayError("upstream_rate_limited", "The upstream limits the rate of every account that may be used", {
        retryAfter: inSeconds(refusal.until - now)
      })
    case "Unavailable":
      return gatewayError(
        "no_account_available",
        "No upstream account can be used: none is configured, or the upstream refuses them"
      )
    case "Unknown":
      return invalidRequest("No such account is configured", "X-Gateway-Target-Account")
  }
}

/** A caller's own token where these are not accepted. */
export const directTokensOff = (): GatewayError => gatewayError("authentication_failed", "The API key is not valid")
