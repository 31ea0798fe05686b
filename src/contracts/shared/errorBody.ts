/**
 * The JSON of a server's error as a fact of a failure. Whether callers get it is decided elsewhere (`domain/passedError.ts`).
 */
import { type ErrorBody, isErrorBody, longestPassed } from "../../domain/errorBody.ts"
import { isShallow } from "./json.ts"

const encoder = new TextEncoder()

/**
 * The fact of an error's JSON, which may be the only element of a list: JSON with an error object, of 64 KiB at most and not nested too
 * deeply. `bytes` is the size of its text, if that is known.
 */
export const errorBody = (stated: unknown, bytes?: number): { readonly body?: ErrorBody } => {
  const body: unknown = Array.isArray(stated) ? stated[0] : stated
  if (!isErrorBody(body) || !isShallow(body)) return {}
  return (bytes ?? encoder.encode(JSON.stringify(body)).length) > longestPassed ? {} : { body }
}
