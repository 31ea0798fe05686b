/** The pool's refusals as callers see them (behaviour "Errors" and "The pool"). */
import { accountsNamed, type AccountTable, ambiguous } from "../config/Account.ts"
import { unknownRetryAfter } from "../domain/classifyUpstreamFailure.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import type { Refusal } from "../placement/PoolState.ts"
import type { Caller } from "./Lease.ts"

/** Seconds after which a client may retry a busy pool: slots become free all the time. */
const busyRetryAfter = 2

const inSeconds = (milliseconds: number): number => Math.max(1, Math.ceil(milliseconds / 1_000))

/** The error of requests that the shutdown of the gateway ends. */
export const shuttingDown = gatewayError("shutting_down", "The gateway is shutting down", { retryAfter: 5 })

const pinHeader = "X-Gateway-Target-Account"

const ofHeader = (text: string): GatewayError => invalidRequest(`${pinHeader} ${text}`, pinHeader)

/** Why every account is out of rotation. */
export interface Outage {
  /** When the first account is tried again; infinity while that is happening. */
  readonly until: number
  /** The fault in words, if it is known. */
  readonly reason: string | undefined
}

/**
 * The error of a refused request, which has waited for so many milliseconds. `now` is on the clock of `Refusal.until` and of the outage.
 */
export const refusalError = (refusal: Refusal, now: number, outage?: Outage, waited = 0): GatewayError => {
  switch (refusal._tag) {
    case "Full":
      return gatewayError(
        "rate_limit_exceeded",
        "The gateway is busy: all accounts are in use, and its queue is full. Retry later.",
        {
          retryAfter: busyRetryAfter
        }
      )
    case "Late":
      return gatewayError(
        "rate_limit_exceeded",
        waited < 1_000
          ? "The gateway is busy: no account became free in time. Retry later."
          : `The gateway is busy: the request waited ${Math.floor(waited / 1_000)} s for a free account. Retry later.`,
        { retryAfter: busyRetryAfter }
      )
    case "Cooling":
      return gatewayError(
        "upstream_rate_limited",
        "The upstream limits the rate of all accounts that can serve this request. Retry later.",
        {
          retryAfter: inSeconds(refusal.until - now)
        }
      )
    case "Unavailable":
      return gatewayError(
        "no_account_available",
        outage?.reason === undefined
          ? "No upstream account can be used: none is configured, or the upstream refuses them. Ask the gateway's operator."
          : `No upstream account can be used: ${outage.reason}`,
        {
          retryAfter: outage === undefined
            ? unknownRetryAfter
            : Number.isFinite(outage.until)
            ? inSeconds(outage.until - now)
            : 1
        }
      )
    case "Closing":
      return shuttingDown
    case "Unknown":
      return ofHeader("names an account that does not exist. Name another account, or remove the header.")
  }
}

/** The error of a request whose accounts are all at their budgets or limited by their upstreams. */
export const overBudget = (seconds: number): GatewayError =>
  gatewayError(
    "upstream_rate_limited",
    "All accounts that can serve this request are at their budgets, or limited by their upstreams. Retry later.",
    { retryAfter: Math.max(1, Math.ceil(seconds)) }
  )

/** The error of a request that is pinned to an account of an upstream which does not serve its model. */
export const otherUpstream = (
  upstream: string,
  targets: ReadonlyArray<string>,
  model: string | undefined
): GatewayError =>
  ofHeader(
    `names an account of the upstream "${upstream}", but ${
      model === undefined ? "the model" : `"${model}"`
    } is served by ${targets.map((name) => `"${name}"`).join(", ")}. Name another account, or remove the header.`
  )

/** The error of a request that is pinned by an identifier which accounts of several upstreams have. */
export const ambiguousAccount = (table: AccountTable, caller: Caller): GatewayError => {
  const name = caller._tag === "Managed" ? caller.target ?? "" : ""
  return ofHeader(ambiguous(accountsNamed(table, name)))
}

/** The error of a request for a model whose upstreams are all disabled; `undefined` if one is enabled. */
export const disabledUpstreams = (
  upstreams: ReadonlyMap<string, { readonly enabled: boolean }>,
  targets: ReadonlyArray<string>,
  model: string | undefined
): GatewayError | undefined => {
  const configured = targets.flatMap((name) => upstreams.get(name) ?? [])
  if (configured.length === 0 || configured.some(({ enabled }) => enabled)) return undefined
  const names = targets.map((name) => `"${name}"`).join(", ")
  return gatewayError(
    "no_account_available",
    `${model === undefined ? "The model" : `The model "${model}"`} is unavailable: ${
      targets.length === 1 ? `its upstream ${names} is` : `its upstreams ${names} are`
    } disabled. Ask the gateway's operator.`,
    { retryAfter: unknownRetryAfter }
  )
}

/** The error of a credential that is no key, where only a key is accepted. */
export const notAKey = gatewayError(
  "authentication_failed",
  "The credential is no key of this gateway. Send a gateway key; the gateway's operator creates them."
)

/** The error of a credential that is no key and cannot be a token, where callers' own tokens are accepted too. */
export const notAKeyOrToken = gatewayError(
  "authentication_failed",
  "The credential is no key of this gateway, and cannot be a token of its upstream. Send a gateway key, or a token that the upstream's " +
    "provider has issued to you."
)

/** The error of requests while the shared store does not answer. */
export const storeUnavailable = (): GatewayError =>
  gatewayError("store_unavailable", "The gateway's shared store does not answer", { retryAfter: 1 })
