/**
 * Classifies upstream failures by the rules of `failureRules.ts`.
 *
 * Drivers state facts (`UpstreamFailure.ts`). Retry, failover, account health, HTTP status and message all follow from the rule.
 */
import { causeClass, type FailureCause, longestExcerpt } from "./FailureCause.ts"
import type { FailureClass } from "./FailureClass.ts"
import { mayHaveArrived } from "./failureReasons.ts"
import { type AccountHealth, type FailureContext, type Next, type Retry, type Rule, rules } from "./failureRules.ts"
import { errorTable, type GatewayError, gatewayError } from "./GatewayError.ts"
import { isOfAccount, passedError } from "./passedError.ts"
import { waitInWords } from "./quota.ts"
import { messageLimit, redactMessage, shorten } from "./redact.ts"
import { longestWait } from "./statedTime.ts"
import type { UpstreamFailure } from "./UpstreamFailure.ts"

const ofRequests: ReadonlySet<FailureClass> = new Set<FailureClass>([
  "shutting_down",
  "withdrawn",
  "prompt_too_long",
  "request_too_large",
  "caller_mistake"
])

/** Whether a failure counts as an error of the upstream, unlike the refusal of a request for what it is. */
export const isOfUpstream = (failure: { readonly class: FailureClass }): boolean => !ofRequests.has(failure.class)

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
): boolean => (keyless && failure.class === "rate_limited") || (isModelOut && limits.has(failure.class))

/** A caller's own token has no other account, and a login beside a key may have other targets. */
const nextOf = ({ next }: Rule, { direct, hasKey, shown }: FailureContext): Next =>
  shown || (direct && hasKey !== true) ? "end" : direct && next === "account" ? "target" : next

/** A cause with the status and the message of the server, without the `secrets`; `undefined` without any of these. */
const causeOf = (
  { advice, cause, message, status }: UpstreamFailure,
  secrets: ReadonlyArray<string>
): FailureCause | undefined => {
  const words = redactMessage(message, secrets)
  if (cause === undefined && status === undefined && words === undefined && advice === undefined) return undefined
  return {
    ...status === undefined ? {} : { status },
    ...cause,
    ...words === undefined ? {} : { message: shorten(words, longestExcerpt) },
    ...advice === undefined ? {} : { setting: advice }
  }
}

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
      serverCode: context.keepsCode ? failure.serverCode : undefined,
      passed: passedError(failure, rule.class, status, context.passing),
      cause: causeOf(failure, context.secrets)
    }),
    retryAfter: stated
  }
}
