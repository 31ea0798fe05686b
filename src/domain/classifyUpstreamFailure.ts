/**
 * What an upstream failure is and what follows from it: one table of ordered rules, the first that fits decides.
 *
 * Drivers state facts, this function judges, and retry, failover, account health, status and message all follow from it.
 */
import { causeClass } from "./FailureCause.ts"
import { type ErrorCode, type GatewayError, gatewayError } from "./GatewayError.ts"
import { messageLimit, redactMessage, shorten } from "./redact.ts"
import type { UpstreamFailure } from "./UpstreamFailure.ts"

/** What a failure is. */
export type FailureClass =
  | "shutting_down"
  | "withdrawn"
  | "login_refused"
  | "account_suspended"
  | "quota_exhausted"
  | "rate_limited"
  | "token_refused"
  | "key_missing"
  | "account_busy"
  | "prompt_too_long"
  | "session_gone"
  | "forbidden"
  | "request_too_large"
  | "endpoint_missing"
  | "model_unavailable"
  | "caller_mistake"
  | "timed_out"
  | "empty_reply"
  | "unreachable"
  | "cut_off"
  | "disagreement"
  | "overdue"
  | "exhausted"
  | "upstream_trouble"

/**
 * Whether another try makes sense: on the same account with a fresh token, on another account (the same one where there is
 * no other), or not at all.
 */
export type Retry = "here_after_refresh" | "elsewhere" | "no"

/**
 * What a failure says about the account. `none`: nothing, it neither heals nor harms; `refused_login`: its login or its
 * token does not work; `suspended`: the upstream closed it; `rate_limited`: it needs to cool down; `token_expired`: the
 * token has to be replaced, the account is well; `busy`: it has as many completions running as it may.
 */
export type AccountHealth = "none" | "refused_login" | "suspended" | "rate_limited" | "token_expired" | "busy"

/** Facts about the attempt that failed. */
export interface FailureContext {
  /** The credential is the caller's own token: no refresh, no other account. */
  readonly direct: boolean
  /** The account may still fetch a fresh token within this request. */
  readonly mayRefresh: boolean
  /** A frame of the reply has gone to the client. */
  readonly shown: boolean
  /** There is no other account to try: another attempt asks the same server the same. */
  readonly alone?: boolean
  /** What the upstream was told in confidence, and must not be quoted with. */
  readonly secrets?: ReadonlyArray<string>
}

/** The judgement on a failure. */
export interface Classification {
  readonly class: FailureClass
  readonly retry: Retry
  readonly health: AccountHealth
  /** What the caller gets when no further try is made. */
  readonly error: GatewayError
  /** Seconds that the upstream asked to wait, where it did. */
  readonly retryAfter: number | undefined
}

/** One rule. `because` says why the rule is as it is. */
export interface Rule {
  readonly class: FailureClass
  readonly when: (failure: UpstreamFailure, context: FailureContext) => boolean
  readonly retry: Retry
  readonly health: AccountHealth
  readonly code: ErrorCode
  /** False where a caller's next try is pointless although the code's is not. */
  readonly mayRepeat?: false
  /** The request's field that is at fault. */
  readonly param?: string
  /** Stands before the upstream's own message. */
  readonly message: string
  readonly because: string
}

const has = <A>(...values: ReadonlyArray<A>) => (value: A | undefined): boolean =>
  value !== undefined && values.includes(value)

const tokenCode = has(40001, 40002, 40003)
/**
 * The words from which an account's health follows: exact values of an error's `code`, `type` or `status`, or of a detail's
 * `reason`. Its message never is one: servers repeat in it what the caller wrote.
 */
const limitReasons = [
  "rate_limit_reached",
  "rate_limit_exceeded",
  "rate_limit_error",
  "too_many_requests",
  "RATE_LIMIT_EXCEEDED",
  "RESOURCE_EXHAUSTED"
]
const quotaReasons = [
  "insufficient_quota",
  "insufficient_balance",
  "billing_hard_limit_reached",
  "billing_not_active",
  "quota_exceeded",
  "QUOTA_EXCEEDED",
  "BILLING_DISABLED"
]
const keyReasons = [
  "invalid_api_key",
  "authentication_error",
  "invalid_authentication",
  "invalid_authentication_error",
  "token_expired",
  "API_KEY_INVALID",
  "API_KEY_EXPIRED",
  "ACCESS_TOKEN_EXPIRED",
  "UNAUTHENTICATED"
]
const closedReasons = ["account_deactivated", "organization_deactivated", "account_suspended", "ACCOUNT_STATE_INVALID"]

const limitReason = has(...limitReasons)
const quotaReason = has(...quotaReasons)
const keyReason = has(...keyReasons)
const closedReason = has(...closedReasons)

/** True for a word that says something of the account. */
export const tellsHealth = has(...limitReasons, ...quotaReasons, ...keyReasons, ...closedReasons)

const lengthReason = has(
  "context_length_exceeded",
  "input_exceeds_limit",
  "exceed_context_size_error",
  "string_above_max_length"
)
const modelReason = has("model_not_found", "model_not_available", "invalid_model", "DeploymentNotFound")
const filterReason = has("content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation")
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

/** A refusal by a server without an envelope: its HTTP status tells what it means. */
const plain = (failure: UpstreamFailure): boolean =>
  failure.kind === "refused" && failure.code === undefined && failure.bizCode === undefined

const says = (failure: UpstreamFailure, words: RegExp): boolean => words.test(failure.message?.slice(0, 2000) ?? "")

/**
 * Whether a refusal is about the model that was asked for. Many servers have no word of their own for it, so that the message
 * of a 404 decides between a missing model and a wrong address: it changes what the caller reads, never an account's health.
 */
export const refusesModel = (failure: UpstreamFailure): boolean =>
  modelReason(failure.reason) ||
  (failure.status === 404 && (failure.reason === "NotFoundError" || says(failure, /\bmodels?\b/i)))

const inLogin = (failure: UpstreamFailure): boolean => failure.phase === "login"

const inReply = (failure: UpstreamFailure): boolean => failure.phase !== "login" && failure.phase !== "session"

const tokenRefused = (failure: UpstreamFailure): boolean =>
  tokenCode(failure.code) || failure.status === 401 ||
  (plain(failure) && keyReason(failure.reason))

const timedOut = (failure: UpstreamFailure): boolean => failure.kind === "timeout" || has(408, 504, 524)(failure.status)

/** The request may have reached the server: only where no connection came about it surely has not. */
export const mayHaveArrived = ({ cause }: UpstreamFailure): boolean =>
  !has("UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT")(cause?.code)

/** The rules, in order. */
export const rules: ReadonlyArray<Rule> = [
  {
    class: "shutting_down",
    when: (failure) => failure.kind === "shutting_down",
    retry: "no",
    health: "none",
    code: "shutting_down",
    message: "The gateway is shutting down",
    because: "the gateway itself ended it; another of its nodes, or the next start, may serve"
  },
  {
    class: "withdrawn",
    when: (failure) => failure.kind === "withdrawn" || (plain(failure) && filterReason(failure.reason)),
    retry: "no",
    health: "none",
    code: "content_filter",
    message: "The upstream's content filter withdrew the reply",
    because: "the same prompt is filtered on every account"
  },
  {
    class: "login_refused",
    when: (failure) => inLogin(failure) && failure.bizCode === 2,
    retry: "elsewhere",
    health: "refused_login",
    code: "no_account_available",
    message: "The login of an upstream account was refused",
    because: "wrong credentials stay wrong until the operator changes them"
  },
  {
    class: "account_suspended",
    when: (failure) => (inLogin(failure) && failure.bizCode === 5) || closedReason(failure.reason),
    retry: "elsewhere",
    health: "suspended",
    code: "no_account_available",
    message: "An upstream account is suspended",
    because: "a suspended account cannot serve anybody"
  },
  {
    class: "quota_exhausted",
    when: (failure) => failure.status === 402 || quotaReason(failure.reason),
    retry: "elsewhere",
    health: "rate_limited",
    code: "upstream_rate_limited",
    message: "The upstream account has used up its quota",
    because: "sent as a 429 by most servers, and waiting a second does not help; the pool's growing delays do"
  },
  {
    class: "rate_limited",
    when: (failure) => failure.code === 42900 || failure.status === 429 || limitReason(failure.reason),
    retry: "elsewhere",
    health: "rate_limited",
    code: "upstream_rate_limited",
    message: "The upstream limits the rate of requests",
    because: "limits are per account, so that another one may serve; HTTP 429 counts whatever its body is"
  },
  {
    class: "login_refused",
    when: (failure) =>
      inLogin(failure) && failure.kind === "refused" && (tokenRefused(failure) || failure.status === 403),
    retry: "elsewhere",
    health: "refused_login",
    code: "no_account_available",
    message: "The login of an upstream account was refused",
    because: "a login has no token to refresh"
  },
  {
    class: "token_refused",
    when: (failure, context) => tokenRefused(failure) && context.direct,
    retry: "no",
    health: "none",
    code: "authentication_failed",
    message: "The upstream refused the token",
    because: "the token is the caller's own; only the caller can bring another"
  },
  {
    class: "key_missing",
    when: (failure) => tokenRefused(failure) && failure.anonymous === true,
    retry: "elsewhere",
    health: "refused_login",
    code: "no_account_available",
    message: "The upstream asks for an API key and none is configured",
    because: "there is no token that could be refused, and the operator has to bring one"
  },
  {
    class: "token_refused",
    when: (failure, context) => tokenRefused(failure) && context.mayRefresh,
    retry: "here_after_refresh",
    health: "token_expired",
    code: "no_account_available",
    message: "The upstream refused an account's token",
    because: "tokens expire and are revoked; a login usually cures it"
  },
  {
    class: "token_refused",
    when: tokenRefused,
    retry: "elsewhere",
    health: "refused_login",
    code: "no_account_available",
    message: "The upstream refused an account's token",
    because: "a token that is refused right after a refresh, or that cannot be refreshed, is no login that works"
  },
  {
    class: "account_busy",
    when: (failure) => inReply(failure) && failure.bizCode === 6,
    retry: "elsewhere",
    health: "busy",
    code: "upstream_rate_limited",
    message: "The upstream account has too many completions running",
    because: "somebody else uses the account too; it is well, and free again soon"
  },
  {
    class: "prompt_too_long",
    when: (failure) =>
      (inReply(failure) && failure.bizCode === 9) || lengthReason(failure.reason) ||
      (plain(failure) && says(failure, lengthWords)),
    retry: "no",
    health: "none",
    code: "context_length_exceeded",
    message: "The prompt is too long for the upstream",
    because: "no account takes a longer prompt than another; some servers say it in words only"
  },
  {
    class: "session_gone",
    when: (failure) => failure.bizCode === 3 && !inLogin(failure),
    retry: "elsewhere",
    health: "none",
    code: "upstream_error",
    message: "The upstream session is gone",
    because: "sessions can be deleted under a running request; a new attempt makes a new one"
  },
  {
    class: "forbidden",
    when: (failure, context) => plain(failure) && failure.status === 403 && context.direct,
    retry: "no",
    health: "none",
    code: "authentication_failed",
    message: "The upstream does not permit this token the request",
    because: "the token is the caller's own"
  },
  {
    class: "forbidden",
    when: (failure) => plain(failure) && failure.status === 403,
    retry: "elsewhere",
    health: "none",
    code: "upstream_error",
    message: "The upstream does not permit the account this request",
    because: "permissions differ between accounts, and depend on what was asked for: no word on the account's health"
  },
  {
    class: "request_too_large",
    when: (failure) => plain(failure) && failure.status === 413,
    retry: "no",
    health: "none",
    code: "request_too_large",
    message: "The request is too large for the upstream",
    because: "it is as large on every account"
  },
  {
    class: "endpoint_missing",
    when: (failure) =>
      plain(failure) &&
      (failure.status === 405 || (failure.status === 404 && !refusesModel(failure))),
    retry: "no",
    health: "none",
    code: "upstream_error",
    mayRepeat: false,
    message: "The upstream has no such endpoint",
    because:
      "a 404 that does not speak of a model is a wrong address more often than not, until the operator changes it"
  },
  {
    class: "model_unavailable",
    when: (failure) => plain(failure) && refusesModel(failure),
    retry: "no",
    health: "none",
    code: "model_not_found",
    param: "model",
    message: "The upstream does not have the model",
    because: "no later try finds it, and SDKs try a 503 again for minutes; every account talks to the same server"
  },
  {
    class: "caller_mistake",
    when: (failure) => plain(failure) && (failure.status === 400 || failure.status === 422),
    retry: "no",
    health: "none",
    code: "invalid_request",
    message: "The upstream refused the request",
    because: "what is wrong with a request stays wrong"
  },
  {
    class: "overdue",
    when: (failure) => failure.kind === "overdue",
    retry: "no",
    health: "none",
    code: "upstream_timeout",
    message: "The upstream did not answer in time",
    because: "the time is that of the request, over all attempts"
  },
  {
    class: "exhausted",
    when: (failure) => failure.kind === "exhausted",
    retry: "no",
    health: "none",
    code: "upstream_error",
    message: "The upstream makes too much work",
    because: "what a request may cost is used up, whoever would try again"
  },
  {
    class: "timed_out",
    when: (failure, context) => timedOut(failure) && context.alone === true && mayHaveArrived(failure),
    retry: "no",
    health: "none",
    code: "upstream_timeout",
    message: "The upstream did not answer in time",
    because: "a server that is at work on a request is not helped by getting it again"
  },
  {
    class: "timed_out",
    when: timedOut,
    retry: "elsewhere",
    health: "none",
    code: "upstream_timeout",
    message: "The upstream did not answer in time",
    because: "a slow moment of the upstream is no fault of the account"
  },
  {
    class: "empty_reply",
    when: (failure) => failure.kind === "empty" && (failure.phase === "stream" || failure.phase === "resume"),
    retry: "elsewhere",
    health: "none",
    code: "upstream_empty_output",
    message: "The upstream's reply was empty",
    because: "models do this now and then; an empty success would not be the truth"
  },
  {
    class: "unreachable",
    when: (failure) => failure.kind === "transport",
    retry: "elsewhere",
    health: "none",
    code: "upstream_error",
    message: "The connection to the upstream failed",
    because: "the network's fault"
  },
  {
    class: "cut_off",
    when: (failure) => failure.kind === "truncated",
    retry: "elsewhere",
    health: "none",
    code: "upstream_error",
    message: "The upstream's reply was cut off and could not be resumed",
    because: "the reply is not complete, and must not look so"
  },
  {
    class: "disagreement",
    when: (failure) => failure.kind === "disagrees",
    retry: "elsewhere",
    health: "none",
    code: "upstream_error",
    message: "The upstream changed what it had already sent of the reply",
    because: "text that is out cannot be taken back"
  },
  {
    class: "upstream_trouble",
    when: () => true,
    retry: "elsewhere",
    health: "none",
    code: "upstream_error",
    message: "The upstream failed",
    because: "pages, empty bodies, broken events, 5xx and codes that nobody knows are trouble of the upstream's own"
  }
]

/** Seconds after which a limited upstream is worth another try where it does not say. */
const defaultRetryAfter = 1

/** Nobody is told to wait for longer, or for no time at all. */
const longestRetryAfter = 600

const clampWait = (seconds: number): number => Math.min(longestRetryAfter, Math.max(1, seconds))

const wholeSeconds = (failure: UpstreamFailure, code: ErrorCode): number | undefined => {
  if (failure.retryAfter !== undefined) return clampWait(Math.ceil(failure.retryAfter))
  return code === "upstream_rate_limited" ? defaultRetryAfter : undefined
}

const describe = (rule: Rule, failure: UpstreamFailure, { secrets }: FailureContext): string => {
  const own = redactMessage(failure.message, secrets)
  if (own !== undefined) return shorten(`${rule.message}: ${own}`, messageLimit)
  const seen = causeClass(failure.cause)
  return seen === undefined ? `${rule.message}.` : `${rule.message}: ${seen}.`
}

/**
 * Judges a failure. Pure and total: every failure has a class. Nothing is tried again once a frame has been shown, nor with
 * a caller's own token. Source: `behaviour` "Errors" and "The pool", `upstream-protocol` "Envelope".
 */
export const classify = (failure: UpstreamFailure, context: FailureContext): Classification => {
  const rule = rules.find((rule) => rule.when(failure, context))!
  return {
    class: rule.class,
    retry: context.shown || context.direct ? "no" : rule.retry,
    health: context.direct ? "none" : rule.health,
    error: gatewayError(rule.code, describe(rule, failure, context), {
      param: rule.param,
      retry: rule.mayRepeat,
      retryAfter: wholeSeconds(failure, rule.code),
      cause: failure.cause
    }),
    retryAfter: failure.retryAfter === undefined ? undefined : clampWait(failure.retryAfter)
  }
}
