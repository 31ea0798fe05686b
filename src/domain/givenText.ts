/**
 * Texts that a caller gives: blank ones count as absent.
 */
import * as Result from "effect/Result"
import { type GatewayError, invalidRequest } from "./GatewayError.ts"

/** The trimmed text; `undefined` if it is empty or absent. */
export const given = (text: string | null | undefined): string | undefined => text?.trim() || undefined

/** Characters that RFC 9110 allows in the value of a header. */
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** The text of a credential, if a header can carry it; the error names `field`. */
export const headerText = (text: string, field: string): Result.Result<string, GatewayError> =>
  headerValue.test(text)
    ? Result.succeed(text)
    : Result.fail(invalidRequest(`${field} has characters that no header can carry`, field))
