/**
 * What went wrong, in words for people.
 */
import * as Cause from "effect/Cause"
import * as HttpClientError from "effect/http/HttpClientError"
import * as Predicate from "effect/Predicate"
import { texts } from "./preferences.ts"

/** The message of whatever a call failed with: the gateway's own words, or that it was not reached. */
export const failureText = (failure: unknown): string => {
  const t = texts()
  if (HttpClientError.isHttpClientError(failure)) {
    return failure.response === undefined ? t.failures.unreachable : t.failures.status(failure.response.status)
  }
  if (failure instanceof TypeError && /fetch|network/i.test(failure.message)) return t.failures.unreachable
  if (Predicate.hasProperty(failure, "message") && typeof failure.message === "string" && failure.message !== "") {
    return failure.message
  }
  return t.failures.unknown
}

/** The same for a cause. */
export const causeText = <E>(cause: Cause.Cause<E>): string => failureText(Cause.squash(cause))

/** Whether a call failed because there is no such thing. */
export const isMissing = (failure: unknown): boolean =>
  Predicate.hasProperty(failure, "code") && failure.code === "not_found"
