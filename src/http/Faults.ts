/**
 * Collects the first fault that a style's decoder finds, so that decoders read as plain functions.
 */
import * as Result from "effect/Result"
import type { GatewayError } from "../domain/GatewayError.ts"
import { invalidRequest } from "../domain/GatewayError.ts"

export interface Faults {
  /** Notes a fault at a field; only the first one counts. */
  readonly at: (field: string, message: string) => void
  /** Notes an error of another code than `invalid_request`. */
  readonly add: (error: GatewayError) => void
  /** The decoded value, unless a fault was noted. */
  readonly result: <A>(value: A) => Result.Result<A, GatewayError>
}

/** Starts a collection. */
export const makeFaults = (): Faults => {
  let first: GatewayError | undefined
  return {
    at(field, message) {
      first ??= invalidRequest(`${field}: ${message}`, field)
    },
    add(error) {
      first ??= error
    },
    result: (value) => first === undefined ? Result.succeed(value) : Result.fail(first)
  }
}
