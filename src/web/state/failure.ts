/**
 * Failures in words for people.
 */
import * as Cause from "effect/Cause"
import * as HttpClientError from "effect/http/HttpClientError"
import * as Predicate from "effect/Predicate"
import { texts } from "./preferences.ts"

/** A failure in words for people: the gateway's own message, or that the gateway was not reached. */
export const failureText = (failure: unknown): string => {
  const t = texts().failures
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

const hasCode = (code: string) => (failure: unknown): boolean =>
  Predicate.hasProperty(failure, "code") && failure.code === code

/** Whether a call failed because the thing does not exist. */
export const isMissing = hasCode("not_found")

/** Whether a call failed because the configuration does not allow it as it is. */
export const isConflict = hasCode("conflict")
