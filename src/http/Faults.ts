/**
 * Collects the first fault of a style's decoder, so that decoders are plain functions.
 */
import * as Result from "effect/Result"
import { type GatewayError, invalidRequest } from "../domain/GatewayError.ts"

/** A collection of faults, and of what has no effect. */
export class Faults {
  #first: GatewayError | undefined
  #ignored: Array<string> | undefined

  /** Paths of the fields that have no effect, in order. Bounded by the request's elements. */
  get ignored(): ReadonlyArray<string> {
    return this.#ignored ?? []
  }

  /** Notes that the field at this path has no effect. */
  noteIgnored(path: string): void {
    this.#ignored ??= []
    this.#ignored.push(path)
  }

  /** Adds an `invalid_request` fault at a field; only the first fault counts. */
  at(field: string, message: string): void {
    this.#first ??= invalidRequest(`${field}: ${message}`, field)
  }

  /** Adds an error with another code. */
  add(error: GatewayError): void {
    this.#first ??= error
  }

  /** The decoded value, or the first fault. */
  result<A>(value: A): Result.Result<A, GatewayError> {
    return this.#first === undefined ? Result.succeed(value) : Result.fail(this.#first)
  }
}
