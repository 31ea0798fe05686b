/**
 * Finds unknown fields, which are mostly misspelt. A configuration keeps them, because another version of the gateway may
 * know them, and the operator gets a warning. A request of the admin API is rejected.
 */
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { fieldName } from "../domain/GatewayError.ts"
import { nearest } from "../domain/nearest.ts"
import { type Cooperative, eachCooperatively } from "../domain/stream/cooperative.ts"
import { runCooperatively } from "./clock/cooperative.ts"
import { type Fault, fault } from "./ConfigError.ts"
import { ConfigDocument } from "./document.ts"
import { isJsonObject, type RawConfig } from "./json.ts"

const mostUnknown = 20

/** The known fields of a value: by name, of any other field, and of list items; and whether the value is a secret. */
export interface Known {
  readonly fields: ReadonlyMap<string, Known>
  readonly others: Known | undefined
  readonly items: Known | undefined
  readonly sensitive: boolean
}

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
    items: items.length === 0 ? undefined : knownBy(items),
    sensitive: asts.some((ast) => SchemaAST.resolve(ast)?.["sensitive"] === true)
  }
}

/** Whether a value may contain unknown fields at any depth. */
const hasNames = ({ fields, items, others }: Known): boolean =>
  fields.size > 0 || (items !== undefined && hasNames(items)) || (others !== undefined && hasNames(others))

/** The fields of the file, computed on first use. */
let known: Known | undefined
const documentFields = (): Known => known ??= knownBy([SchemaAST.toEncoded(ConfigDocument.ast)])

/** All places of a name in the file: `timeouts` is `upstream.timeouts`. */
const placesOf = (name: string, within: Known, path: ReadonlyArray<string>): ReadonlyArray<string> =>
  [...within.fields].flatMap(([field, below]) => [
    ...(field === name ? [[...path, field].join(".")] : []),
    ...placesOf(name, below, [...path, field])
  ])

/** Checked list items without unknown fields. Lists are long, and most items are unchanged from update to update. */
const clean = new WeakSet<object>()

class Search {
  readonly found: Array<Fault> = []
  private readonly path: Array<string | number> = []
  private readonly isFile: boolean

  constructor(root: Known) {
    this.isFile = root === known
  }

  /** The probable intended place of a name. Only for the file, places elsewhere in the file are suggested. */
  private meant(name: string, siblings: Known): string | undefined {
    const [meant] = nearest(name, siblings.fields.keys())
    if (meant !== undefined) return fieldName([...this.path, meant])
    const [place] = placesOf(name, documentFields(), [])
    return this.isFile || place === fieldName([...this.path, name]) ? place : undefined
  }

  /** Adds a fault for an unknown field, with a suggestion. */
  private note(name: string, siblings: Known): void {
    const field = fieldName([...this.path, name])
    const meant = this.meant(name, siblings)
    const rule = meant === field
      ? "is not taken here: it is set in the configuration file"
      : `is an unknown field${meant === undefined ? "" : `: did you mean ${meant}?`}`
    this.found.push(fault(field, rule))
  }

  look(value: Schema.Json, within: Known): void {
    if (this.found.length >= mostUnknown) return
    if (Array.isArray(value)) {
      if (within.items !== undefined) value.forEach((item, place) => this.lookAt(place, item, within.items!))
    } else if (isJsonObject(value)) {
      for (const [field, below] of this.fieldsOf(value, within)) this.look(field, below)
    }
  }

  /** Yields the fields that may contain unknown fields, and reports the unknown ones. */
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

  lookAt(place: number, item: Schema.Json, within: Known): void {
    if (typeof item !== "object" || item === null || (this.isFile && clean.has(item))) return
    const before = this.found.length
    this.path.push(place)
    this.look(item, within)
    this.path.pop()
    if (this.isFile && this.found.length === before && before < mostUnknown) clean.add(item)
  }
}

/** The known fields of schemas, for `findUnknown`. Compute it once per schema. */
export const fieldsOf = (schemas: ReadonlyArray<Schema.Constraint>): Known =>
  knownBy(schemas.map((schema) => SchemaAST.toEncoded(schema.ast)))

/**
 * Returns a fault for each unknown field of `value`, at most 20. Runs in slices, because lists may be long. Values other
 * than objects have no fields.
 */
export function* findUnknown(within: Known, value: unknown): Cooperative<ReadonlyArray<Fault>> {
  if (!isJsonObject(value)) return []
  const found = new Search(within)
  for (const [field, below] of found.fieldsOf(value, within)) {
    const items = below.items
    if (Array.isArray(field) && items !== undefined) {
      yield* eachCooperatively(field, (item, place) => found.lookAt(place, item, items))
    } else if (isJsonObject(field)) {
      yield* eachCooperatively(found.fieldsOf(field, below), ([record, of]) => found.look(record, of))
    }
  }
  return found.found
}

/** One warning for each unknown field of a configuration file. */
export const unknownFields = (raw: unknown): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(
    Effect.suspend(() => runCooperatively(findUnknown(documentFields(), raw))),
    (faults) => faults.map(({ message }) => message)
  )
