/**
 * Credentials that are to go into a header: not every text can.
 */
import * as Result from "effect/Result"
import { type GatewayError, invalidRequest } from "../domain/GatewayError.ts"

/** What RFC 9110 lets a header's value have in it. */
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** The text of a field, where a header can carry it. */
export const headerText = (text: string, field: string): Result.Result<string, GatewayError> =>
  headerValue.test(text)
    ? Result.succeed(text)
    : Result.fail(invalidRequest(`${field} has characters that no header can carry`, field))
