/**
 * Collects the first fault of a style's decoder, so that decoders are plain functions.
 */
import * as Result from "effect/Result"
import type { Natives } from "../domain/families/Natives.ts"
import { type GatewayError, invalidRequest } from "../domain/GatewayError.ts"
import type { Native } from "../domain/Native.ts"

/** A collection of faults and of what has no effect, with the natives of the body. */
export class Faults {
  readonly #natives: Natives | undefined
  #first: GatewayError | undefined
  #ignored: Array<string> | undefined

  constructor(natives?: Natives) {
    this.#natives = natives
  }

  /** False for an ordinary body, which has no natives. */
  get hasNatives(): boolean {
    return this.#natives !== undefined
  }

  /** The native of the element at this path. The decoder puts it on the element; otherwise it counts as having no effect. */
  nativeAt(path: string): Native | undefined {
    return this.#natives?.take(path)
  }

  /** Paths of the fields that have no effect, in order. Bounded by the request's elements. */
  get ignored(): ReadonlyArray<string> {
    return this.#ignored ?? []
  }

  /** Notes that the field at this path has no effect; for an element with a native of its own, that only its family's drivers send it. */
  noteIgnored(path: string): void {
    if (this.#natives?.noteWhole(path) === true) return
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
