/**
 * The ordered rules that classify upstream failures, of which the first that matches decides.
 */
import type { FailureClass } from "./FailureClass.ts"
import {
  closedReason,
  filterReason,
  inLogin,
  limitReason,
  mayHaveArrived,
  mistakeWords,
  plain,
  quotaReason,
  refusesLength,
  refusesModel,
  says,
  saysExpired,
  timedOut,
  tokenRefused
} from "./failureReasons.ts"
import type { ErrorCode } from "./GatewayError.ts"
import type { Passing } from "./passedError.ts"
import type { UpstreamFailure } from "./UpstreamFailure.ts"

/** Where to retry: on the same account with a fresh token, on another account (or the same one if it is the only one), or not at all. */
export type Retry = "here_after_refresh" | "elsewhere" | "no"

/**
 * Where else the request may go: to another account of the target and then to other targets, or to other targets alone. `end`: the
 * failure is the request's own, or its time is over.
 */
export type Next = "account" | "target" | "end"

/**
 * What a failure says about the account. `none`: nothing. `refused_login`: its login or token does not work. `suspended`: the upstream
 * closed it. `rate_limited`: it must cool down. `token_expired`: the account is healthy, but its token must be replaced. `busy`: it has
 * as many completions running as the upstream permits.
 */
export type AccountHealth = "none" | "refused_login" | "suspended" | "rate_limited" | "token_expired" | "busy"

/** Facts about the attempt that failed. */
export interface FailureContext {
  /** The upstream's name, for the message; `undefined` where there is only one. */
  readonly upstream: string | undefined
  /** The name of the only upstream, for the message of a failed connection: that names the server which is down. */
  readonly only: string | undefined
  /** The credential is the caller's own token: no refresh, no other account. */
  readonly direct: boolean
  /** The caller has a key beside that token: the request may go on to other targets. `undefined` where no caller matters. */
  readonly hasKey: boolean | undefined
  /** The account may still fetch a fresh token for this request. */
  readonly mayRefresh: boolean
  /** A frame of the reply was sent to the client. */
  readonly shown: boolean
  /** No other account exists: a retry sends the same request to the same server. */
  readonly alone: boolean
  /** The upstream needs no account: a limit of its rate is one of the model, and its other models go on. */
  readonly keyless: boolean
  /** The caller speaks the server's contract, and knows its codes. */
  readonly keepsCode: boolean
  /** How the server's error may reach the caller; `undefined` if the caller gets the gateway's own errors alone. */
  readonly passing: Passing | undefined
  /** Seconds until the latest reset of what the answer says is used up of the account's quota. */
  readonly resetsIn: number | undefined
  /** Only the model that was asked is used up: the account serves its other models. */
  readonly isModelOut: boolean
  /** Secrets that were sent to the upstream; its message is quoted without them. */
  readonly secrets: ReadonlyArray<string>
}

/** A first try on one of several accounts, with nothing to hide. */
export const plainContext: FailureContext = {
  upstream: undefined,
  only: undefined,
  direct: false,
  hasKey: undefined,
  mayRefresh: false,
  shown: false,
  alone: false,
  keyless: false,
  keepsCode: false,
  passing: undefined,
  resetsIn: undefined,
  isModelOut: false,
  secrets: []
}

/** One rule; `because` is its reason. */
export interface Rule {
  readonly class: FailureClass
  readonly when: (failure: UpstreamFailure, context: FailureContext) => boolean
  /** On the same target. */
  readonly retry: Retry
  readonly next: Next
  /** `none` by default. */
  readonly health?: AccountHealth
  readonly code: ErrorCode
  /** False when a retry by the caller is pointless, unlike for other errors with this code. */
  readonly mayRepeat?: false
  /** The request's field that caused the failure. */
  readonly param?: string
  /** Precedes the upstream's own message. The name of the upstream follows the word where there are several. */
  readonly message: string
  readonly because: string
}

/** What follows where an account has no credential that works. */
const ofLogin = {
  retry: "elsewhere",
  next: "account",
  health: "refused_login",
  code: "no_account_available"
} as const

/** The rules, in order; the last one matches everything. */
export const rules: ReadonlyArray<Rule> = [
  {
    class: "shutting_down",
    when: (failure) => failure.kind === "shutting_down",
    retry: "no",
    next: "end",
    code: "shutting_down",
    message: "The gateway is shutting down",
    because: "the gateway ends its requests; another node serves, or this one after its restart"
  },
  {
    class: "withdrawn",
    when: (failure) => failure.kind === "withdrawn" || (plain(failure) && filterReason(failure.reason)),
    retry: "no",
    next: "end",
    code: "content_filter",
    message: "The content filter of the upstream withdrew the reply",
    because: "the same prompt is filtered on every account"
  },
  {
    class: "login_refused",
    when: (failure) => failure.refusal === "login",
    ...ofLogin,
    message: "The login of an account was refused by the upstream",
    because: "wrong credentials stay wrong until the operator changes them"
  },
  {
    class: "login_refused",
    when: (failure) => failure.refusal === "source",
    ...ofLogin,
    message: "The credential of an account of the upstream cannot be renewed",
    because: "the server was not asked; the account has no token until its source works again"
  },
  {
    class: "account_suspended",
    when: (failure) => failure.refusal === "suspended" || closedReason(failure.reason),
    retry: "elsewhere",
    next: "account",
    health: "suspended",
    code: "no_account_available",
    message: "The upstream has suspended the account",
    because: "a suspended account cannot serve requests"
  },
  {
    class: "quota_exhausted",
    when: (failure) => failure.status === 402 || quotaReason(failure.reason),
    retry: "elsewhere",
    next: "account",
    health: "rate_limited",
    code: "upstream_rate_limited",
    message: "The account has used up its quota at the upstream",
    because: "most servers send it as a 429, but a quota needs the pool's growing delays instead of a second"
  },
  {
    class: "rate_limited",
    when: (failure) => failure.refusal === "rate" || failure.status === 429 || limitReason(failure.reason),
    retry: "elsewhere",
    next: "account",
    health: "rate_limited",
    code: "upstream_rate_limited",
    message: "The upstream limits the rate of requests",
    because: "limits are per account, so another account may serve; a 429 counts with any body"
  },
  {
    class: "login_refused",
    when: (failure) =>
      inLogin(failure) && failure.kind === "refused" && (tokenRefused(failure) || failure.status === 403),
    ...ofLogin,
    message: "The login of an account was refused by the upstream",
    because: "a login has no token to refresh"
  },
  {
    class: "token_refused",
    when: (failure, context) => tokenRefused(failure) && context.direct && context.hasKey === false,
    retry: "no",
    next: "account",
    code: "authentication_failed",
    message: "The credential is no key of this gateway, and the upstream refused it as a token",
    because: "a mistyped key and a token that has ended look alike, and only the caller can tell them apart"
  },
  {
    class: "token_refused",
    when: (failure, context) => tokenRefused(failure) && context.direct,
    retry: "no",
    next: "account",
    code: "authentication_failed",
    message: "The upstream refused your own token",
    because: "the token is the caller's own, so only the caller can replace it"
  },
  {
    class: "key_missing",
    when: (failure) => tokenRefused(failure) && failure.anonymous === true,
    ...ofLogin,
    message: "The upstream asks for an API key and none is configured",
    because: "the request had no token, and only the operator can configure one"
  },
  {
    class: "token_refused",
    when: (failure, context) => context.mayRefresh && (tokenRefused(failure) || saysExpired(failure)),
    retry: "here_after_refresh",
    next: "account",
    health: "token_expired",
    code: "no_account_available",
    message: "The upstream refused an account's token",
    because: "tokens expire and are revoked; a new login usually helps"
  },
  {
    class: "token_refused",
    when: tokenRefused,
    ...ofLogin,
    message: "The upstream refused an account's token",
    because: "a token that is refused right after a refresh, or cannot be refreshed, means that the login does not work"
  },
  {
    class: "account_busy",
    when: (failure) => failure.refusal === "busy",
    retry: "elsewhere",
    next: "account",
    health: "busy",
    code: "upstream_rate_limited",
    message: "The account has too many completions running at the upstream",
    because: "another client uses the account too; it is healthy and soon free"
  },
  {
    class: "overloaded",
    when: (failure) => failure.status === 529 || (plain(failure) && failure.reason === "overloaded_error"),
    retry: "elsewhere",
    next: "target",
    health: "busy",
    code: "upstream_rate_limited",
    message: "The upstream is overloaded",
    because: "the server is soon free, and says so by a status of its own"
  },
  {
    class: "prompt_too_long",
    when: refusesLength,
    retry: "no",
    next: "end",
    code: "context_length_exceeded",
    message: "The prompt is too long for the upstream",
    because: "the limit is the same for every account; some servers state it only in the message"
  },
  {
    class: "session_gone",
    when: (failure) => failure.refusal === "lost_session",
    retry: "elsewhere",
    next: "target",
    code: "upstream_error",
    message: "The upstream has lost the session",
    because: "a session can be deleted during a request; a retry creates a new one"
  },
  {
    class: "forbidden",
    when: (failure, context) => plain(failure) && failure.status === 403 && context.direct,
    retry: "no",
    next: "account",
    code: "authentication_failed",
    message: "The upstream does not allow your token to make this request",
    because: "the token is the caller's own"
  },
  {
    class: "forbidden",
    when: (failure) => plain(failure) && failure.status === 403,
    retry: "elsewhere",
    next: "account",
    code: "upstream_error",
    message: "The upstream does not permit the account this request",
    because: "permissions differ between accounts and requests, so they say nothing about the account's health"
  },
  {
    class: "request_too_large",
    when: (failure) => plain(failure) && (failure.status === 413 || failure.reason === "request_too_large"),
    retry: "no",
    next: "end",
    code: "request_too_large",
    message: "The request is too large for the upstream",
    because: "the request has the same size on every account"
  },
  {
    class: "endpoint_missing",
    when: (failure) =>
      plain(failure) &&
      (failure.status === 405 || (failure.status === 404 && !refusesModel(failure))),
    retry: "no",
    next: "target",
    code: "upstream_error",
    mayRepeat: false,
    message: "The upstream has no such endpoint",
    because: "a 404 without a word about a model usually means a wrong address, which only the operator can change"
  },
  {
    class: "model_unavailable",
    when: (failure) => plain(failure) && refusesModel(failure),
    retry: "no",
    next: "target",
    code: "model_not_found",
    param: "model",
    message: "The upstream does not have the model",
    because: "every account uses the same server, and SDKs would retry a 503 for minutes"
  },
  {
    class: "caller_mistake",
    when: (failure) =>
      plain(failure) &&
      (failure.status === 400 || failure.status === 422 || (failure.status === 500 && says(failure, mistakeWords))),
    retry: "no",
    next: "end",
    code: "invalid_request",
    message: "The upstream refused the request",
    because: "an invalid request stays invalid"
  },
  {
    class: "caller_mistake",
    when: (failure) => plain(failure) && failure.status === 415,
    retry: "no",
    next: "end",
    code: "unsupported_media_type",
    message: "The upstream refused the content type",
    because: "a file or body of the wrong kind stays wrong"
  },
  {
    class: "overdue",
    when: (failure) => failure.kind === "overdue",
    retry: "no",
    next: "end",
    code: "upstream_timeout",
    message: "The upstream did not answer in time",
    because: "the time limit covers all attempts of the request"
  },
  {
    class: "exhausted",
    when: (failure) => failure.kind === "exhausted",
    retry: "no",
    next: "end",
    code: "upstream_error",
    message: "The reply exceeded what the gateway allows one request to use",
    because: "the request's budget is used up"
  },
  {
    class: "timed_out",
    when: (failure) => timedOut(failure) && !mayHaveArrived(failure) && failure.cause?.proxy?.of !== "account",
    retry: "no",
    next: "target",
    code: "upstream_timeout",
    message: "The upstream did not answer in time",
    because:
      "the system repeats the opening of a connection within its time limit, so another one would only take the same time"
  },
  {
    class: "timed_out",
    when: (failure, context) =>
      timedOut(failure) && failure.isWhole !== true && context.alone && mayHaveArrived(failure),
    retry: "no",
    next: "target",
    code: "upstream_timeout",
    message: "The upstream did not answer in time",
    because: "a server that still works on a request should not get it again"
  },
  {
    class: "timed_out",
    when: timedOut,
    retry: "elsewhere",
    next: "target",
    code: "upstream_timeout",
    message: "The upstream did not answer in time",
    because: "a slow upstream is not the account's fault, and may answer in time by a stream"
  },
  {
    class: "empty_reply",
    when: (failure) => failure.kind === "empty" && (failure.phase === "stream" || failure.phase === "resume"),
    retry: "elsewhere",
    next: "target",
    code: "upstream_empty_output",
    message: "The reply of the upstream was empty",
    because: "models do this occasionally, and an empty success would be wrong"
  },
  {
    class: "proxy_failed",
    when: (failure) => failure.cause?.proxy?.of === "account",
    retry: "elsewhere",
    next: "account",
    health: "refused_login",
    code: "upstream_error",
    message: "The proxy for this upstream failed",
    because: "the proxy is the account's own, and other accounts have other ways"
  },
  {
    class: "unreachable",
    when: (failure) => failure.cause?.proxy !== undefined,
    retry: "elsewhere",
    next: "target",
    code: "upstream_error",
    message: "The proxy for this upstream failed",
    because: "all accounts without a proxy of their own go the same way"
  },
  {
    class: "unreachable",
    when: (failure) => failure.kind === "transport",
    retry: "elsewhere",
    next: "target",
    code: "upstream_error",
    message: "The connection to the upstream failed",
    because: "the network failed, not the account"
  },
  {
    class: "cut_off",
    when: (failure) => failure.kind === "truncated",
    retry: "elsewhere",
    next: "target",
    code: "upstream_error",
    message: "The reply of the upstream was cut off and could not be resumed",
    because: "an incomplete reply must not look complete"
  },
  {
    class: "disagreement",
    when: (failure) => failure.kind === "disagrees",
    retry: "elsewhere",
    next: "target",
    code: "upstream_error",
    message: "The upstream changed what it had already sent of the reply",
    because: "emitted text cannot be retracted"
  },
  {
    class: "upstream_trouble",
    when: () => true,
    retry: "elsewhere",
    next: "target",
    code: "upstream_error",
    message: "The upstream failed",
    because: "pages, empty bodies, broken events, 5xx and unknown codes are the upstream's own trouble"
  }
]
