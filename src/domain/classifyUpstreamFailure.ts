/**
 * Classifies upstream failures by a table of ordered rules, of which the first that matches decides.
 *
 * Drivers state facts (`UpstreamFailure.ts`). Retry, failover, account health, HTTP status and message all follow from the rule.
 */
import { causeClass, causeWith } from "./FailureCause.ts"
import type { FailureClass } from "./FailureClass.ts"
import { type ErrorCode, errorTable, type GatewayError, gatewayError } from "./GatewayError.ts"
import { isOfAccount, passedError, type Passing } from "./passedError.ts"
import { waitInWords } from "./quota.ts"
import { messageLimit, redactMessage, shorten } from "./redact.ts"
import { longestWait } from "./statedTime.ts"
import type { UpstreamFailure } from "./UpstreamFailure.ts"

export type { FailureClass }

const ofRequests: ReadonlySet<FailureClass> = new Set<FailureClass>([
  "shutting_down",
  "withdrawn",
  "prompt_too_long",
  "request_too_large",
  "caller_mistake"
])

/** Whether a failure counts as an error of the upstream, unlike the refusal of a request for what it is. */
export const isOfUpstream = (failure: { readonly class: FailureClass }): boolean => !ofRequests.has(failure.class)

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
  /** The upstream's name, for the message; absent where there is only one. */
  readonly upstream?: string | undefined
  /** The name of the only upstream, for the message of a failed connection: that names the server which is down. */
  readonly only?: string | undefined
  /** The credential is the caller's own token: no refresh, no other account. */
  readonly direct: boolean
  /** The caller has a key beside that token: the request may go on to other targets. */
  readonly hasKey?: boolean
  /** The account may still fetch a fresh token for this request. */
  readonly mayRefresh: boolean
  /** A frame of the reply was sent to the client. */
  readonly shown: boolean
  /** No other account exists: a retry sends the same request to the same server. */
  readonly alone?: boolean
  /** The upstream needs no account: a limit of its rate is one of the model, and its other models go on. */
  readonly keyless?: boolean
  /** The caller speaks the server's contract, and knows its codes. */
  readonly keepsCode?: boolean
  /** How the server's error may reach the caller; absent if the caller gets the gateway's own errors alone. */
  readonly passing?: Passing | undefined
  /** Seconds until the latest reset of what the answer says is used up of the account's quota. */
  readonly resetsIn?: number | undefined
  /** Only the model that was asked is used up: the account serves its other models. */
  readonly isModelOut?: boolean
  /** Secrets that were sent to the upstream; its message is quoted without them. */
  readonly secrets?: ReadonlyArray<string>
}

/** The judgement on a failure. */
export interface Classification {
  readonly class: FailureClass
  readonly retry: Retry
  readonly next: Next
  readonly health: AccountHealth
  /** The caller's error when no retry follows. */
  readonly error: GatewayError
  /** Seconds until the latest time to come back that the upstream states, up to `longestRetryAfter`. */
  readonly retryAfter: number | undefined
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

const has = <A>(...values: ReadonlyArray<A>) => (value: A | undefined): boolean =>
  value !== undefined && values.includes(value)

const hasWord = (words: string) => has(...words.split(" "))

// An account's health follows only from these words: exact values of an error's `code`, `type` or `status`, or of a detail's `reason`.
// It never follows from a message, in which servers repeat what the caller wrote.
const limitReason = hasWord(
  "rate_limit_reached rate_limit_exceeded rate_limit_error too_many_requests RATE_LIMIT_EXCEEDED RESOURCE_EXHAUSTED"
)
const quotaReason = hasWord(
  "insufficient_quota insufficient_balance billing_hard_limit_reached billing_not_active billing_error quota_exceeded " +
    "QUOTA_EXCEEDED BILLING_DISABLED usage_limit_reached usage_not_included"
)
const keyReason = hasWord(
  "invalid_api_key authentication_error invalid_authentication invalid_authentication_error token_expired API_KEY_INVALID " +
    "API_KEY_EXPIRED ACCESS_TOKEN_EXPIRED UNAUTHENTICATED"
)
const closedReason = hasWord(
  "account_deactivated organization_deactivated account_suspended ACCOUNT_STATE_INVALID"
)

/** True for a word from which an account's health follows. */
export const isHealthReason = (reason: string | undefined): boolean =>
  limitReason(reason) || quotaReason(reason) || keyReason(reason) || closedReason(reason)

const lengthReason = hasWord(
  "context_length_exceeded input_exceeds_limit exceed_context_size_error string_above_max_length"
)
const modelReason = hasWord("model_not_found model_not_available invalid_model DeploymentNotFound")
const filterReason = hasWord("content_filter content_policy_violation ResponsibleAIPolicyViolation")
const lengthWords = new RegExp(
  [
    "context (?:length|size|window)",
    "maximum (?:context|prompt|model) length",
    "(?:prompt|input) is too long",
    "input (?:length|token count)\\b.{0,40} exceeds",
    "too many (?:input )?tokens",
    "inputs` (?:tokens \\+|must have less than)"
  ].join("|"),
  "i"
)

/** Servers' words for a mistake of the request that they answer with the status 500: llama.cpp's of media, Ollama's of schemas. */
const mistakeWords = /\b(?:image|audio|video) input is not supported\b|^invalid JSON schema\b/

/** True for a refusal without a code of the contract, so that the HTTP status has its usual meaning. */
const plain = (failure: UpstreamFailure): boolean => failure.kind === "refused" && failure.refusal === undefined

const says = (failure: UpstreamFailure, words: RegExp): boolean => words.test(failure.message?.slice(0, 2000) ?? "")

/**
 * True for a refusal of the requested model. Many servers have no code for it, so the message of a 404 decides between an unknown model
 * and a wrong address. That changes only the caller's message, never an account's health.
 */
export const refusesModel = (failure: UpstreamFailure): boolean =>
  modelReason(failure.reason) ||
  (failure.status === 404 && (failure.reason === "NotFoundError" || says(failure, /\bmodels?\b/i)))

/** True for a refusal of a prompt that is longer than the model's window. */
export const refusesLength = (failure: UpstreamFailure): boolean =>
  failure.refused?.some(({ _tag }) => _tag === "OverWindow") !== true && (
    failure.refusal === "length" || lengthReason(failure.reason) || (plain(failure) && says(failure, lengthWords))
  )

const inLogin = (failure: UpstreamFailure): boolean => failure.phase === "login"

const tokenRefused = (failure: UpstreamFailure): boolean =>
  failure.refusal === "token" || failure.status === 401 ||
  (plain(failure) && keyReason(failure.reason))

const timedOut = (failure: UpstreamFailure): boolean => failure.kind === "timeout" || has(408, 504, 524)(failure.status)

/** False when no connection was established, so that the request cannot have reached the server. */
export const mayHaveArrived = ({ cause }: UpstreamFailure): boolean =>
  !has("UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT")(cause?.code)

/**
 * True if the upstream refused the request, or something other than a model server answered, so that no work was done for it. A refused
 * resume says nothing about the request.
 */
export const refusesRequest = ({ cause, kind, phase, status = 0 }: UpstreamFailure): boolean =>
  phase !== "resume" && (kind === "refused" || kind === "gave_up" || status >= 400 || cause?.body !== undefined)

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
    retry: "elsewhere",
    next: "account",
    health: "refused_login",
    code: "no_account_available",
    message: "The login of an account was refused by the upstream",
    because: "wrong credentials stay wrong until the operator changes them"
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
    retry: "elsewhere",
    next: "account",
    health: "refused_login",
    code: "no_account_available",
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
    retry: "elsewhere",
    next: "account",
    health: "refused_login",
    code: "no_account_available",
    message: "The upstream asks for an API key and none is configured",
    because: "the request had no token, and only the operator can configure one"
  },
  {
    class: "token_refused",
    when: (failure, context) => tokenRefused(failure) && context.mayRefresh,
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
    retry: "elsewhere",
    next: "account",
    health: "refused_login",
    code: "no_account_available",
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
      timedOut(failure) && failure.isWhole !== true && context.alone === true && mayHaveArrived(failure),
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

/** `Retry-After` in seconds for a rate-limited upstream that does not state one. */
const defaultRetryAfter = 1

/** `Retry-After` in seconds where no time is known: for a server that cannot be reached, and for want of an account. */
export const unknownRetryAfter = 5

/** The `Retry-After` of a failure for which the upstream states none, in seconds. */
const defaultWait = ({ class: failureClass, code }: Rule, failure: UpstreamFailure): number | undefined => {
  if (code === "upstream_rate_limited") return defaultRetryAfter
  const isDown = failureClass === "unreachable" || (failureClass === "timed_out" && !mayHaveArrived(failure))
  return isDown || code === "no_account_available" ? unknownRetryAfter : undefined
}

/** The longest `Retry-After` in seconds that callers get, 30 days; the shortest is 1. */
export const longestRetryAfter = longestWait / 1_000

const limits: ReadonlySet<FailureClass> = new Set<FailureClass>(["rate_limited", "quota_exhausted"])

/** The seconds that a failure states. What is used up of a quota, and what the words say, counts for the refusals of limits. */
const statedWait = (
  rule: Rule,
  { message = "", retryAfter }: UpstreamFailure,
  { resetsIn }: FailureContext
): number | undefined => {
  const times = limits.has(rule.class) ? [retryAfter, resetsIn, waitInWords(message)] : [retryAfter]
  const stated = times.filter((time) => time !== undefined)
  return stated.length === 0 ? undefined : Math.min(longestRetryAfter, Math.max(1, ...stated))
}

/** The text for callers. What the operator may change is in the error's cause. */
const describe = (rule: Rule, failure: UpstreamFailure, context: FailureContext): string => {
  const text = happened(rule, failure, context)
  if (rule.class === "unreachable") return `${text} Retry later, or ask the gateway's operator.`
  return failure.advice === undefined ? text : `${text.replace(/\.?$/, ".")} Ask the gateway's operator.`
}

const happened = (rule: Rule, failure: UpstreamFailure, { only, secrets, upstream }: FailureContext): string => {
  const name = upstream ?? (rule.class === "unreachable" ? only : undefined)
  const message = name === undefined
    ? rule.message
    : rule.message.replace(/\b(?:the|this) upstream\b/i, (words) => `${words} "${name}"`)
  const own = redactMessage(failure.message, secrets)
  if (own !== undefined) return shorten(`${message}: ${own}`, messageLimit)
  const seen = causeClass(failure.cause)
  if (seen === undefined && rule.class === "upstream_trouble" && (failure.status ?? 0) >= 400) {
    return `${message} with HTTP ${failure.status}.`
  }
  return seen === undefined ? `${message}.` : `${message}: ${seen}.`
}

/** True for a limit that leaves the other models of the account. */
export const isOfModel = (
  failure: { readonly class: FailureClass },
  { isModelOut, keyless }: Pick<FailureContext, "isModelOut" | "keyless">
): boolean =>
  (keyless === true && failure.class === "rate_limited") || (isModelOut === true && limits.has(failure.class))

/** A caller's own token has no other account, and a login beside a key may have other targets. */
const nextOf = ({ next }: Rule, { direct, hasKey, shown }: FailureContext): Next =>
  shown || (direct && hasKey !== true) ? "end" : direct && next === "account" ? "target" : next

/**
 * Classifies a failure. Pure and total. No retry follows after a frame was shown, or with a caller's own token. Source: `behaviour`
 * "Errors" and "The pool", `upstream-protocol` "Envelope".
 */
export const classify = (failure: UpstreamFailure, context: FailureContext): Classification => {
  const rule = rules.find((rule) => rule.when(failure, context))!
  const stated = statedWait(rule, failure, context)
  const { status } = errorTable[rule.code]
  return {
    class: rule.class,
    retry: context.shown || context.direct ? "no" : rule.retry,
    next: nextOf(rule, context),
    health: context.direct || isOfModel(rule, context) ? "none" : rule.health ?? "none",
    error: gatewayError(rule.code, describe(rule, failure, context), {
      param: rule.param ??
        (status < 500 ? redactMessage(failure.param, context.secrets) : undefined),
      retry: rule.mayRepeat,
      retryAfter: stated === undefined ? defaultWait(rule, failure) : Math.ceil(stated),
      // The milliseconds of a server say less than a later reset.
      retryAfterMs: (stated ?? 0) > Math.max(1, failure.retryAfter ?? 0) ? undefined : failure.retryAfterMs,
      // Of an account that is refused, the server cannot know whether another one serves.
      serverRetry: !context.direct && isOfAccount(rule) ? undefined : failure.shouldRetry,
      serverCode: context.keepsCode === true ? failure.serverCode : undefined,
      passed: passedError(failure, rule.class, status, context.passing),
      cause: causeWith(failure, context.secrets)
    }),
    retryAfter: stated
  }
}
