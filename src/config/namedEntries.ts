/**
 * Decodes a group whose fields are names of models (`domain/nameTable.ts`). There may be thousands of entries, so decoding yields to other
 * fibers, and an unchanged group is decoded once.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { normalizeModelName } from "../domain/models.ts"
import { makeNameTable, type NameTable, noNames } from "../domain/nameTable.ts"
import { type Fault, fault, faultsOf } from "./ConfigError.ts"
import { forEachCooperatively, isJsonObject } from "./json.ts"

/** Cost of decoding an entry, in characters (`forEachCooperatively`). */
const entryWeight = 2048

/** A group of named entries. */
interface NamedGroup<A> {
  readonly group: string
  /** The most entries. */
  readonly most: number
  /** Whether a field is a setting beside the entries. */
  readonly isSetting: (name: string, entry: Schema.Json) => boolean
  readonly decode: (entry: Schema.Json) => Result.Result<A, Schema.SchemaError>
}

/** Makes the decoder of a group; it adds what is wrong to `faults`. */
export const namedEntries = <A>({ decode, group, isSetting, most }: NamedGroup<A>) => {
  const tables = new WeakMap<object, NameTable<A>>()
  return Effect.fnUntraced(function*(
    raw: Schema.Json | undefined,
    faults: Array<Fault>
  ): Effect.fn.Return<NameTable<A>> {
    if (raw === undefined) return noNames
    if (!isJsonObject(raw)) {
      faults.push(fault(group, "must be an object"))
      return noNames
    }
    const known = tables.get(raw)
    if (known !== undefined) return known
    const found: Array<Fault> = []
    const values = new Map<string, A>()
    const entries = Object.entries(raw)
    if (entries.length > most) found.push(fault(group, `must have at most ${most} entries`))
    yield* forEachCooperatively(entries.slice(0, most), ([written, entry]) => {
      if (isSetting(written, entry)) return
      const name = normalizeModelName(written)
      const wrong = (rule: string) => found.push(fault(`${group}.${written}`, rule))
      if (name === "") found.push(fault(group, "must not have an empty name"))
      if (name.slice(0, -1).includes("*")) wrong("may have * at its end only")
      if (values.has(name)) wrong("is named twice, but for case and blanks")
      const decoded = decode(entry)
      if (Result.isFailure(decoded)) found.push(...faultsOf(decoded.failure, [group, written]))
      else values.set(name, decoded.success)
      return entryWeight
    })
    faults.push(...found)
    const table = makeNameTable(values)
    if (found.length === 0) tables.set(raw, table)
    return table
  })
}
