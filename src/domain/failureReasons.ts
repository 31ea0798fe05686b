/**
 * What the facts of an upstream failure mean: the words and statuses by which servers refuse requests, models, tokens and accounts.
 */
import type { UpstreamFailure } from "./UpstreamFailure.ts"

export const has = <A>(...values: ReadonlyArray<A>) => (value: A | undefined): boolean =>
  value !== undefined && values.includes(value)

const hasWord = (words: string) => has(...words.split(" "))

// An account's health follows only from these words: exact values of an error's `code`, `type` or `status`, or of a detail's `reason`.
// It never follows from a message, in which servers repeat what the caller wrote.
export const limitReason = hasWord(
  "rate_limit_reached rate_limit_exceeded rate_limit_error too_many_requests RATE_LIMIT_EXCEEDED RESOURCE_EXHAUSTED " +
    "ThrottlingException throttlingException"
)
export const quotaReason = hasWord(
  "insufficient_quota insufficient_balance billing_hard_limit_reached billing_not_active billing_error quota_exceeded " +
    "QUOTA_EXCEEDED BILLING_DISABLED usage_limit_reached usage_not_included"
)
const keyReason = hasWord(
  "invalid_api_key authentication_error invalid_authentication invalid_authentication_error token_expired API_KEY_INVALID " +
    "API_KEY_EXPIRED ACCESS_TOKEN_EXPIRED UNAUTHENTICATED ExpiredToken ExpiredTokenException TokenExpired " +
    "InvalidSignatureException SignatureDoesNotMatch UnrecognizedClientException MissingAuthenticationTokenException"
)
export const closedReason = hasWord(
  "account_deactivated organization_deactivated account_suspended ACCOUNT_STATE_INVALID"
)

/** True for a word from which an account's health follows. */
export const isHealthReason = (reason: string | undefined): boolean =>
  limitReason(reason) || quotaReason(reason) || keyReason(reason) || closedReason(reason)

const lengthReason = hasWord(
  "context_length_exceeded input_exceeds_limit exceed_context_size_error string_above_max_length"
)
const modelReason = hasWord("model_not_found model_not_available invalid_model DeploymentNotFound")
export const filterReason = hasWord("content_filter content_policy_violation ResponsibleAIPolicyViolation")
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
export const mistakeWords = /\b(?:image|audio|video) input is not supported\b|^invalid JSON schema\b/

/** True for a refusal without a code of the contract, so that the HTTP status has its usual meaning. */
export const plain = (failure: UpstreamFailure): boolean => failure.kind === "refused" && failure.refusal === undefined

export const says = (failure: UpstreamFailure, words: RegExp): boolean =>
  words.test(failure.message?.slice(0, 2000) ?? "")

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

export const inLogin = (failure: UpstreamFailure): boolean => failure.phase === "login"

export const tokenRefused = (failure: UpstreamFailure): boolean =>
  failure.refusal === "token" || failure.status === 401 ||
  (plain(failure) && keyReason(failure.reason))

/** True for a 403 whose words say that the token has expired. Words alone take no account out of rotation. */
export const saysExpired = (failure: UpstreamFailure): boolean =>
  failure.status === 403 && plain(failure) &&
  says(failure, /\b(?:token|credentials?)\b.{0,40}\bexpired\b|\bexpired\b.{0,40}\b(?:token|credentials?)\b/i)

export const timedOut = (failure: UpstreamFailure): boolean =>
  failure.kind === "timeout" || has(408, 504, 524)(failure.status)

/** False when no connection was established, so that the request cannot have reached the server. */
export const mayHaveArrived = ({ cause }: UpstreamFailure): boolean =>
  !has("UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT")(cause?.code)

/**
 * True if the upstream refused the request, or something other than a model server answered, so that no work was done for it. A refused
 * resume says nothing about the request.
 */
export const refusesRequest = ({ cause, kind, phase, status = 0 }: UpstreamFailure): boolean =>
  phase !== "resume" && (kind === "refused" || kind === "gave_up" || status >= 400 || cause?.body !== undefined)
