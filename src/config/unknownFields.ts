/**
 * Fields of a configuration that the gateway does not know. They are kept, since a newer or an older gateway may know them,
 * but told, since most of them are misspelt.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { fieldName } from "../domain/fieldName.ts"
import { nearest } from "../domain/nearest.ts"
import { ConfigDocument } from "./document.ts"
import { forEachSliced, isJsonObject, type RawConfig } from "./json.ts"

/** Unknown fields that are told at most. */
const mostUnknown = 20

/** What is known of a value: the fields of an object, and what is in any further field or in any item of a list. */
interface Known {
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

type Path = ReadonlyArray<string | number>

/** What is said of an unknown field: where it is, and what it was probably meant to be. */
const describe = (parent: Path, name: string, siblings: Iterable<string>): string => {
  const [meant] = nearest(name, siblings)
  const suggestion = meant === undefined ? placesOf(name, documentFields(), [])[0] : fieldName([...parent, meant])
  const shown = fieldName([...parent, name])
  if (suggestion === shown) return `${shown} is not taken here: it is set in the configuration file`
  return suggestion === undefined
    ? `${shown} is not a field that the gateway knows`
    : `${shown} is not a field that the gateway knows: did you mean ${suggestion}?`
}

/** Items of lists in which everything is known: lists are long, and most items stay from change to change. */
const clean = new WeakSet<object>()

class Search {
  readonly found: Array<string> = []
  private readonly path: Array<string | number> = []

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
          this.found.push(describe(this.path, name, within.fields.keys()))
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
    if (typeof item !== "object" || item === null || clean.has(item)) return
    const before = this.found.length
    this.path.push(place)
    this.look(item, within)
    this.path.pop()
    if (this.found.length === before && before < mostUnknown) clean.add(item)
  }
}

const search = Effect.fnUntraced(function*(
  within: Known,
  value: unknown
): Effect.fn.Return<ReadonlyArray<string>> {
  if (!isJsonObject(value)) return []
  const found = new Search()
  for (const [field, below] of found.fieldsOf(value, within)) {
    const items = below.items
    if (Array.isArray(field) && items !== undefined) {
      yield* forEachSliced(field, (item, place) => found.lookAt(place, item, items))
    } else if (isJsonObject(field)) {
      yield* forEachSliced(found.fieldsOf(field, below), ([record, of]) => found.look(record, of))
    }
  }
  return found.found
})

/**
 * One sentence for each field of `value` that none of the schemas knows, 20 at most; gives way to others, since lists may be
 * long. What is no object has no fields.
 */
export const unknownFieldsOf = (
  schemas: ReadonlyArray<Schema.Constraint>,
  value: unknown
): Effect.Effect<ReadonlyArray<string>> =>
  search(knownBy(schemas.map((schema) => SchemaAST.toEncoded(schema.ast))), value)

/** The same of the configuration file. */
export const unknownFields = (raw: unknown): Effect.Effect<ReadonlyArray<string>> =>
  Effect.suspend(() => search(documentFields(), raw))
