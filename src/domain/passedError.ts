/**
 * Decides whether a server's error goes to the caller word for word, because both speak the same protocol.
 */
import { isErrorBody, type PassedError } from "./errorBody.ts"
import type { FailureClass } from "./FailureClass.ts"
import { hideIn } from "./hideSecrets.ts"
import type { UpstreamFailure } from "./UpstreamFailure.ts"

/** How a server's error may reach the caller. */
export interface Passing {
  /** The credential is the caller's own: whatever the server says of it is the caller's matter. */
  readonly isOwnLogin: boolean
  /** Exactly one account could answer. */
  readonly isOnly: boolean
  /** A text without secrets. */
  readonly hide: (text: string) => string
}

/** Statuses by which a server refuses the request itself. */
const refusals: ReadonlySet<number> = new Set([400, 404, 405, 409, 413, 415, 422])

/** The statuses of errors that callers get as a server wrote them, without those of their own logins. */
export const passedStatuses: ReadonlyArray<number> = [...refusals, 429, 503, 529]

const ofRequest: ReadonlySet<FailureClass> = new Set<FailureClass>([
  "caller_mistake",
  "model_unavailable",
  "prompt_too_long",
  "request_too_large",
  "withdrawn"
])

const ofAccount: ReadonlySet<FailureClass> = new Set<FailureClass>([
  "account_busy",
  "account_suspended",
  "forbidden",
  "key_missing",
  "login_refused",
  "proxy_failed",
  "token_refused"
])

const ofLimit: ReadonlySet<FailureClass> = new Set<FailureClass>(["overloaded", "quota_exhausted", "rate_limited"])

/** Words by which vendors refuse a request within a reply, which has no status of its own, and the statuses that they mean. */
const requestReasons: ReadonlyMap<string, number> = new Map([["invalid_request_error", 400], ["not_found_error", 404]])

const saysOverload = ({ message = "", reason = "" }: UpstreamFailure): boolean =>
  /overload/i.test(reason) || /overload/i.test(message.slice(0, 2_000))

/** True for a failure of an account, or of its way to the server. */
export const isOfAccount = (failure: { readonly class: FailureClass }): boolean => ofAccount.has(failure.class)

const passes = (failure: UpstreamFailure, found: FailureClass, { isOnly, isOwnLogin }: Passing): boolean => {
  const { reason, status } = failure
  if (isOwnLogin) return true
  if (ofAccount.has(found)) return false
  if (status === undefined) {
    return ofLimit.has(found)
      ? isOnly
      : ofRequest.has(found) || requestReasons.has(reason ?? "")
  }
  if (status === 429 || status === 529) return isOnly
  if (status === 503) return isOnly && saysOverload(failure)
  return refusals.has(status) && !ofLimit.has(found)
}

/**
 * The server's error for the caller; `undefined` if the gateway's own is sent. `status` comes from the gateway's own error, for an error
 * within a reply, which has none.
 */
export const passedError = (
  failure: UpstreamFailure,
  found: FailureClass,
  status: number,
  passing: Passing | undefined
): PassedError | undefined => {
  const { body, requestId } = failure
  if (passing === undefined || !isErrorBody(body) || !passes(failure, found, passing)) return undefined
  const { hide } = passing
  return {
    status: failure.status ?? (ofRequest.has(found) ? status : requestReasons.get(failure.reason ?? "") ?? status),
    body: hideIn(body, hide),
    requestId: requestId === undefined ? undefined : hide(requestId)
  }
}
