/** What one request says by its vendor's contract and the canonical forms do not model. */
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import type { Json, JsonFields } from "../../domain/json.ts"
import type { FamilyName, VendorFields } from "../../domain/VendorFields.ts"

/** Paths that are named at most; the others are counted. */
export const mostPaths = 100

/** A vendor field that counts: without it the reply may be less than the caller wished. */
export interface Note {
  /** The path within the element; empty for the element itself. */
  readonly path: string
  /** The field, or the kind of a whole element. */
  readonly name: string
  /** The reason why the request fails where the field is not sent. */
  readonly required: string | undefined
}

/** The vendor fields of one element, while the body is walked. */
export interface Entry {
  fields: JsonFields
  /** The kind of an element that is sent whole. */
  whole: string | undefined
  readonly notes: Array<Note>
  /** The conversation has it, so that a driver of the family sends it. */
  isAttached: boolean
}

/** What a driver does not send. */
export interface Unsent {
  /** The first `mostPaths` paths. */
  readonly paths: ReadonlyArray<string>
  /** The number of additional paths. */
  readonly more: number
  /** The error of the first field that the reply depends on. */
  readonly refused: GatewayError | undefined
}

/** The vendor fields of one body, by the path of their element. Bounded by the body. */
export class BodyVendorFields {
  readonly vendor: FamilyName
  readonly #entries = new Map<string, Entry>()

  constructor(vendor: FamilyName) {
    this.vendor = vendor
  }

  get size(): number {
    return this.#entries.size
  }

  /** The entry of the element at a path; a new one has these fields. */
  entry(path: string, fields: { [name: string]: Json }): Entry {
    const known = this.#entries.get(path)
    if (known !== undefined) return known
    const entry: Entry = { fields, whole: undefined, notes: [], isAttached: false }
    this.#entries.set(path, entry)
    return entry
  }

  /** Attaches the vendor fields of the element at a path: returns them for the decoder, which puts them on the element. */
  attach(path: string): VendorFields | undefined {
    const entry = this.#entries.get(path)
    if (entry === undefined) return undefined
    entry.isAttached = true
    const { vendor } = this
    const { fields } = entry
    return entry.whole === undefined ? { vendor, fields } : { vendor, fields, wholeElement: true }
  }

  /** Notes that only drivers of the family send the element at a path. Returns false if it is not sent whole. */
  noteWhole(path: string): boolean {
    const entry = this.#entries.get(path)
    if (entry?.whole === undefined) return false
    if (!entry.notes.some((note) => note.path === "")) {
      entry.notes.push({ path: "", name: entry.whole, required: undefined })
    }
    return true
  }

  /** What a driver does not send. `sends`: whether it sends a field, or an element of a kind, at the element's path; absent for
   * other families. */
  unsent(sends?: (name: string, path: string) => boolean): Unsent {
    const paths: Array<string> = []
    let more = 0
    for (const [path, { isAttached, notes }] of this.#entries) {
      for (const { name, path: inner, required } of notes) {
        if (isAttached && sends?.(name, path) === true) continue
        if (required === undefined && paths.length >= mostPaths) more++
        else {
          const full = path === "" || inner === "" ? path + inner : `${path}.${inner}`
          if (required !== undefined) {
            return { paths, more, refused: invalidRequest(`${full}: ${required}`, full) }
          }
          paths.push(full)
        }
      }
    }
    return { paths, more, refused: undefined }
  }
}
