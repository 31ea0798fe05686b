/**
 * Collects the first fault that a style's decoder finds, so that decoders read as plain functions.
 */
import * as Result from "effect/Result"
import { type GatewayError, invalidRequest } from "../domain/GatewayError.ts"

/** A collection of faults. */
export class Faults {
  #first: GatewayError | undefined

  /** Notes a fault at a field; only the first one counts. */
  at(field: string, message: string): void {
    this.#first ??= invalidRequest(`${field}: ${message}`, field)
  }

  /** Notes an error of another code than `invalid_request`. */
  add(error: GatewayError): void {
    this.#first ??= error
  }

  /** The decoded value, unless a fault was noted. */
  result<A>(value: A): Result.Result<A, GatewayError> {
    return this.#first === undefined ? Result.succeed(value) : Result.fail(this.#first)
  }
}
