/**
 * Failures in words for people.
 */
import * as Cause from "effect/Cause"
import * as HttpClientError from "effect/http/HttpClientError"
import * as Predicate from "effect/Predicate"
import { texts } from "./preferences.ts"

/** Why a read was ended: nothing arrived in its time. */
export class TooLate extends Error {}

/** A failure in words for people: the gateway's own message, or that the gateway was not reached. */
export const failureText = (failure: unknown): string => {
  const t = texts().failures
  if (failure instanceof TooLate || (HttpClientError.isHttpClientError(failure) && failure.cause instanceof TooLate)) {
    return t.tooLate
  }
  if (HttpClientError.isHttpClientError(failure)) {
    return failure.response === undefined ? t.unreachable : t.status(failure.response.status)
  }
  if (failure instanceof TypeError && /fetch|network/i.test(failure.message)) return t.unreachable
  if (Predicate.hasProperty(failure, "message") && typeof failure.message === "string" && failure.message !== "") {
    return failure.message
  }
  return t.unknown
}

/** A cause in words for people. */
export const causeText = <E>(cause: Cause.Cause<E>): string => failureText(Cause.squash(cause))

/** Whether the gateway refused a call as wrong: the same call is refused again. */
export const isRefusal = <E>(cause: Cause.Cause<E>): boolean => {
  const failure = Cause.squash(cause)
  return Predicate.hasProperty(failure, "status") && Predicate.hasProperty(failure, "shouldRetry") &&
    Number(failure.status) < 500 && failure.shouldRetry === false
}

const hasCode = (code: string) => (failure: unknown): boolean =>
  Predicate.hasProperty(failure, "code") && failure.code === code

/** Whether a call failed because the thing does not exist. */
export const isMissing = hasCode("not_found")

/** Whether a call failed because the configuration does not allow it as it is. */
export const isConflict = hasCode("conflict")
