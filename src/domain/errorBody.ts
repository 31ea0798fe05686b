/**
 * The JSON of a server's error, which a caller of the same protocol may get as it came.
 */
import type { VendorName } from "../contracts/names.ts"
import { isRecord } from "./json.ts"

/** A protocol in all its forms: chat completions and Responses are one. */
export type ErrorFamily = VendorName

/** The JSON of an error, with its object. */
export interface ErrorBody {
  readonly [field: string]: unknown
  readonly error: { readonly [field: string]: unknown }
}

/** A server's error as a caller gets it. */
export interface PassedError {
  readonly status: number
  readonly body: ErrorBody
  /** The server's id of the request. */
  readonly requestId: string | undefined
}

/** The most bytes of an error's JSON that goes to a caller. */
export const longestPassed = 64 * 1024

/** True for JSON with an error object as the vendors' protocols have it. */
export const isErrorBody = (body: unknown): body is ErrorBody => {
  const error = isRecord(body) ? body["error"] : undefined
  return isRecord(error) && typeof error["message"] === "string"
}

/** A server's error with those of the fields that it lacks, or has in another type. A field that may be `null` is one of text. */
export const filledError = <Fields extends { readonly [field: string]: number | string | null }>(
  error: ErrorBody["error"],
  fields: Fields
): Fields => {
  const filled: { [field: string]: unknown } = { ...error }
  for (const [name, own] of Object.entries(fields)) {
    const stated = filled[name]
    const isStated = typeof stated === (typeof own === "number" ? "number" : "string") ||
      (stated === null && name === "param")
    if (!isStated) filled[name] = own
  }
  return filled as Fields
}
