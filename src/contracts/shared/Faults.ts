/**
 * Collects the first fault of a style's decoder, so that decoders are plain functions.
 */
import * as Result from "effect/Result"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import type { VendorFields } from "../../domain/VendorFields.ts"
import type { BodyVendorFields } from "./BodyVendorFields.ts"

/** A collection of faults and of what has no effect, with the vendor fields of the body. */
export class Faults {
  readonly #bodyVendorFields: BodyVendorFields | undefined
  readonly #mayPassWhole: boolean
  #elsewhere: GatewayError | undefined
  #first: GatewayError | undefined
  #ignored: Array<string> | undefined
  #tools: Set<string> | undefined

  /** `mayPassWhole`: a server of the contract gets the request as its caller wrote it. */
  constructor(bodyVendorFields?: BodyVendorFields, mayPassWhole = false) {
    this.#bodyVendorFields = bodyVendorFields
    this.#mayPassWhole = mayPassWhole
  }

  /** False for an ordinary body, which has no vendor fields. */
  get hasVendorFields(): boolean {
    return this.#bodyVendorFields !== undefined
  }

  /** Attaches the vendor fields of the element at this path: the decoder puts them on the element. Others count as having no effect. */
  attach(path: string): VendorFields | undefined {
    return this.#bodyVendorFields?.attach(path)
  }

  /** Paths of the fields that have no effect, in order. Bounded by the request's elements. */
  get ignored(): ReadonlyArray<string> {
    return this.#ignored ?? []
  }

  /** Notes that the field at this path has no effect; for an element that is sent whole, that only its family's drivers send it. */
  noteIgnored(path: string): void {
    if (this.#bodyVendorFields?.noteWhole(path) === true) return
    this.#ignored ??= []
    this.#ignored.push(path)
  }

  /** The first fault of what only a server of the contract can serve. */
  get elsewhere(): GatewayError | undefined {
    return this.#elsewhere
  }

  /** Adds a fault that counts only where the request is translated. */
  addElsewhere(error: GatewayError): void {
    if (this.#mayPassWhole) this.#elsewhere ??= error
    else this.add(error)
  }

  /** Adds an `invalid_request` fault that counts only where the request is translated. */
  atElsewhere(field: string, message: string): void {
    this.addElsewhere(invalidRequest(`${field}: ${message}`, field))
  }

  /** Adds an `invalid_request` fault at a field; only the first fault counts. */
  at(field: string, message: string): void {
    this.#first ??= invalidRequest(`${field}: ${message}`, field)
  }

  /** Notes the name of a declared tool, at a field; a second tool of the name is a fault. */
  noteTool(field: string, name: string): void {
    this.#tools ??= new Set()
    if (this.#tools.has(name)) this.at(field, "another tool has the same name")
    this.#tools.add(name)
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
