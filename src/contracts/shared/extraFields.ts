/**
 * Fields of a server's reply that the gateway does not model, bounded in number and depth. Values that say nothing are left out.
 */
import { isRecord, type Json, type JsonFields, type JsonRecord } from "../../domain/json.ts"
import { mostFields, otherFields, writeJson } from "./json.ts"

/** The words of a text. */
export const names = (text: string): ReadonlySet<string> => new Set(text.split(" "))

/** True for a value that says something. */
export const says = (value: unknown): boolean =>
  value !== null && value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0)

/** The fields of an object that are not modelled; `undefined` without any. */
export const others = (value: JsonRecord, supported: ReadonlySet<string>): JsonFields | undefined =>
  otherFields(value, supported, says)

/** Finds what is new in fields that a server repeats in every chunk. Keeps at most `mostFields` values. */
export class Changed {
  private readonly known = new Map<string, Json>()

  /** The fields whose values differ from the last ones; `undefined` without any. */
  changed(fields: JsonFields | undefined): JsonFields | undefined {
    if (fields === undefined) return undefined
    let fresh: Record<string, Json> | undefined
    for (const name of Object.keys(fields)) {
      const field = fields[name]!
      // Objects are compared by their text.
      const mark = isRecord(field) || Array.isArray(field) ? writeJson({ field }) ?? "" : field
      if (this.known.get(name) === mark || (!this.known.has(name) && this.known.size >= mostFields)) continue
      this.known.set(name, mark)
      fresh ??= {}
      fresh[name] = field
    }
    return fresh
  }
}
