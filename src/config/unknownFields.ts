/**
 * Fields of a configuration or of a request that the gateway does not know: most of them are misspelt. A configuration keeps
 * them, since a newer or an older gateway may know them, and the operator is warned; a request of the admin API is refused.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { fieldName } from "../domain/GatewayError.ts"
import { nearest } from "../domain/nearest.ts"
import { eachSliced, type Sliced } from "../domain/stream/slices.ts"
import { type Fault, fault } from "./ConfigError.ts"
import { ConfigDocument } from "./document.ts"
import { inSlices } from "./inSlices.ts"
import { isJsonObject, type RawConfig } from "./json.ts"

/** Unknown fields that are told at most. */
const mostUnknown = 20

/** What is known of a value: the fields of an object, and what is in any further field or in any item of a list. */
export interface Known {
  readonly fields: ReadonlyMap<string, Known>
  readonly others: Known | undefined
  readonly items: Known | undefined
}

/** The members of unions, each by itself. */
const membersOf = (asts: ReadonlyArray<SchemaAST.AST>): ReadonlyArray<SchemaAST.AST> =>
  asts.flatMap((ast) => SchemaAST.isUnion(ast) ? membersOf(ast.types) : [ast])

const knownBy = (asts: ReadonlyArray<SchemaAST.AST>): Known => {
  const members = membersOf(asts)
  const objects = members.filter(SchemaAST.isObjects)
  const names = new Set(objects.flatMap((each) => each.propertySignatures.map(({ name }) => String(name))))
  const others = objects.flatMap((each) => each.indexSignatures.map(({ type }) => type))
  const items = members.filter(SchemaAST.isArrays).flatMap((each) => [...each.elements, ...each.rest])
  const ofField = (name: string) =>
    objects.flatMap((each) => each.propertySignatures.flatMap((field) => field.name === name ? [field.type] : []))
  return {
    fields: new Map([...names].map((name) => [name, knownBy(ofField(name))])),
    others: others.length === 0 ? undefined : knownBy(others),
    items: items.length === 0 ? undefined : knownBy(items)
  }
}

/** Whether anything below could be unknown. */
const hasNames = ({ fields, items, others }: Known): boolean =>
  fields.size > 0 || (items !== undefined && hasNames(items)) || (others !== undefined && hasNames(others))

/** The file's fields, worked out when they are first asked for. */
let known: Known | undefined
const documentFields = (): Known => known ??= knownBy([SchemaAST.toEncoded(ConfigDocument.ast)])

/** The places of a name anywhere in the file: `timeouts` is `upstream.timeouts`. */
const placesOf = (name: string, within: Known, path: ReadonlyArray<string>): ReadonlyArray<string> =>
  [...within.fields].flatMap(([field, below]) => [
    ...(field === name ? [[...path, field].join(".")] : []),
    ...placesOf(name, below, [...path, field])
  ])

/** Items of the file's lists in which everything is known: lists are long, and most items stay from change to change. */
const clean = new WeakSet<object>()

class Search {
  readonly found: Array<Fault> = []
  private readonly path: Array<string | number> = []
  private readonly isFile: boolean

  constructor(root: Known) {
    this.isFile = root === known
  }

  /** Where a name was probably meant to stand. Another place in the file is no place in a request. */
  private meant(name: string, siblings: Known): string | undefined {
    const [meant] = nearest(name, siblings.fields.keys())
    if (meant !== undefined) return fieldName([...this.path, meant])
    const [place] = placesOf(name, documentFields(), [])
    return this.isFile || place === fieldName([...this.path, name]) ? place : undefined
  }

  /** Notes an unknown field: where it is, and what it was probably meant to be. */
  private note(name: string, siblings: Known): void {
    const field = fieldName([...this.path, name])
    const meant = this.meant(name, siblings)
    const rule = meant === field
      ? "is not taken here: it is set in the configuration file"
      : `is not a field that the gateway knows${meant === undefined ? "" : `: did you mean ${meant}?`}`
    this.found.push(fault(field, rule))
  }

  /** All that is below a value. */
  look(value: Schema.Json, within: Known): void {
    if (this.found.length >= mostUnknown) return
    if (Array.isArray(value)) {
      if (within.items !== undefined) value.forEach((item, place) => this.lookAt(place, item, within.items!))
    } else if (isJsonObject(value)) {
      for (const [field, below] of this.fieldsOf(value, within)) this.look(field, below)
    }
  }

  /** The fields of an object in which something may be unknown; a field that is unknown itself is noted. */
  *fieldsOf(value: RawConfig, within: Known): Generator<readonly [value: Schema.Json, known: Known]> {
    for (const name in value) {
      const below = within.fields.get(name) ?? within.others
      if (below === undefined) {
        if (within.fields.size > 0 && this.found.length < mostUnknown) {
          this.note(name, within)
        }
      } else if (hasNames(below)) {
        this.path.push(name)
        yield [value[name]!, below]
        this.path.pop()
      }
    }
  }

  /** One item of a list. */
  lookAt(place: number, item: Schema.Json, within: Known): void {
    if (typeof item !== "object" || item === null || (this.isFile && clean.has(item))) return
    const before = this.found.length
    this.path.push(place)
    this.look(item, within)
    this.path.pop()
    if (this.isFile && this.found.length === before && before < mostUnknown) clean.add(item)
  }
}

/** The schemas' fields, for `findUnknown`. Work it out once: schemas do not change. */
export const fieldsOf = (schemas: ReadonlyArray<Schema.Constraint>): Known =>
  knownBy(schemas.map((schema) => SchemaAST.toEncoded(schema.ast)))

/** One fault for each unknown field of `value`, 20 at most; in slices, since lists may be long. What is no object has no fields. */
export function* findUnknown(within: Known, value: unknown): Sliced<ReadonlyArray<Fault>> {
  if (!isJsonObject(value)) return []
  const found = new Search(within)
  for (const [field, below] of found.fieldsOf(value, within)) {
    const items = below.items
    if (Array.isArray(field) && items !== undefined) {
      yield* eachSliced(field, (item, place) => found.lookAt(place, item, items))
    } else if (isJsonObject(field)) {
      yield* eachSliced(found.fieldsOf(field, below), ([record, of]) => found.look(record, of))
    }
  }
  return found.found
}

/** One sentence for each unknown field of a configuration file. */
export const unknownFields = (raw: unknown): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    Effect.suspend(() => inSlices(findUnknown(documentFields(), raw))),
    (faults) => faults.map(({ message }) => message)
  )
