/**
 * The table of a vendor's contract, made from the Schema of its request. The Schema's annotations say what becomes of a field that the
 * gateway does not simply read, which fields of the vendor's an object has beside those of the Schema, and which fields count against
 * the limits of a body.
 */
import type * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { type Family, type Fields, type Kinds, opaque, type Row, supported, type Table } from "./Family.ts"

/**
 * What a field counts as. `turns` and `parts`: its elements, and the parts within them. `functions`: the field of a tool that lists
 * functions; without one, the tool is a function. `stops`: stop sequences. `toolNames`: names of tools. `map`: keys of the caller's own.
 */
export type Counted = "turns" | "parts" | "functions" | "stops" | "toolNames" | "map"

/** A kind of an object: the fields of the Schema that it has, and those of the vendor's. */
export interface KindFields {
  readonly reads: ReadonlyArray<string>
  readonly fields: Table
}

/** What a Schema of a request does not say by itself. */
export interface RequestFacts {
  readonly counted?: Counted
  /** What becomes of the value, in place of what its Schema says. */
  readonly fate?: Row
  /** More about the value. */
  readonly also?: Omit<Partial<Row>, "fate" | "fields" | "kinds" | "items">
  /** Fields of the vendor's that the object's Schema lacks, or that become of something else than it says. */
  readonly fields?: Table
  /**
   * The kinds of an object: other kinds of a union, or all kinds of a single object. `by` is the field that names the kind, by default
   * `type`, or what finds it.
   */
  readonly kinds?: { readonly by?: Kinds["by"]; readonly rows: { readonly [kind: string]: Row | KindFields } }
}

const key = "model-gateway/request"

/** The annotation of a Schema by these facts. */
export const request = (facts: RequestFacts): { readonly [key]: RequestFacts } => ({ [key]: facts })

const factsOf = SchemaAST.resolveAt<RequestFacts>(key)

/** A kind that has these fields of its object's Schema, and these of the vendor's. */
export const reads = (names: ReadonlyArray<string>, fields: Table = {}): KindFields => ({ reads: names, fields })

const isAbsent = (type: SchemaAST.AST): boolean => SchemaAST.isNull(type) || SchemaAST.isUndefined(type)

/** The members of a union without absent values; else the type itself. A union with facts of its own is one member. */
const membersOf = (type: SchemaAST.AST): ReadonlyArray<SchemaAST.AST> =>
  SchemaAST.isUnion(type)
    ? type.types.flatMap((member) =>
      isAbsent(member) ? [] : factsOf(member) === undefined ? membersOf(member) : [member]
    )
    : [type]

const fieldsOf = (objects: ReadonlyArray<SchemaAST.Objects>): Map<string, Row> =>
  new Map(
    objects.flatMap(({ propertySignatures }) =>
      propertySignatures.map(({ name, type }): readonly [string, Row] => [String(name), rowOf(type)])
    )
  )

/** The kinds that an object may be, by the field that names them; `undefined` for kinds that have no name of their own. */
const namesOf = ({ propertySignatures }: SchemaAST.Objects, by: string): ReadonlyArray<string> | undefined => {
  const type = propertySignatures.find(({ name }) => name === by)?.type
  const names = type === undefined ? [] : membersOf(type)
  if (names.every(SchemaAST.isNever)) return [""]
  return names.every(SchemaAST.isLiteral) ? names.map(({ literal }) => String(literal)) : undefined
}

const withFacts = (row: Row, { also, fields }: RequestFacts): Row => ({
  ...row,
  ...also,
  ...(fields === undefined ? {} : { fields: new Map([...row.fields ?? [], ...Object.entries(fields)]) })
})

/** The kinds of a union by its members. Members of one kind have the fields of all of them. */
const memberKinds = (objects: ReadonlyArray<SchemaAST.Objects>, by: string): Map<string, Row> => {
  const members = new Map<string, Array<SchemaAST.Objects>>()
  for (const object of objects) {
    if (factsOf(object)?.kinds !== undefined) continue
    for (const name of namesOf(object, by) ?? []) members.set(name, [...members.get(name) ?? [], object])
  }
  return new Map([...members].map(([name, found]) => [name, found.length === 1 ? rowOf(found[0]!) : merged(found)]))
}

const merged = (objects: ReadonlyArray<SchemaAST.Objects>): Row =>
  objects.map((object) => factsOf(object)).reduce<Row>(
    (row, facts) => facts === undefined ? row : withFacts(row, facts),
    { ...supported, fields: fieldsOf(objects) }
  )

const withKinds = (
  objects: ReadonlyArray<SchemaAST.Objects>,
  { by = "type", rows }: NonNullable<RequestFacts["kinds"]>
): Row => {
  const kinds = memberKinds(objects, typeof by === "string" ? by : "type")
  const all = fieldsOf(objects)
  // Kinds with the same fields share their row.
  const known = new Map<KindFields, Row>()
  const rowOfKind = (kind: KindFields): Row => {
    const read = kind.reads.map((name): readonly [string, Row] => [name, all.get(name)!])
    const row: Row = { ...supported, fields: new Map([...read, ...Object.entries(kind.fields)]) }
    known.set(kind, row)
    return row
  }
  for (const [name, kind] of Object.entries(rows)) {
    kinds.set(name, "fate" in kind ? kind : known.get(kind) ?? rowOfKind(kind))
  }
  return { ...supported, kinds: { by, rows: kinds } }
}

const made = (type: SchemaAST.AST): Row => {
  const facts = factsOf(type) ?? {}
  if (facts.fate !== undefined) return facts.fate
  const members = membersOf(type)
  const list = members.find(SchemaAST.isArrays)
  const objects = members.filter(SchemaAST.isObjects)
  if (members.some(SchemaAST.isUnknown)) return withFacts(opaque, facts)
  if (list !== undefined) {
    const element = list.rest[0] === undefined ? supported : rowOf(list.rest[0])
    return withFacts(isPlain(element) ? element : { ...supported, items: element }, facts)
  }
  const union = members.find(SchemaAST.isUnion)
  if (union !== undefined) return withFacts(rowOf(union), facts)
  if (facts.kinds !== undefined) return withFacts(withKinds(objects, facts.kinds), facts)
  if (objects.length === 0) return withFacts(supported, facts)
  if (objects.length > 1) {
    const kinds = memberKinds(objects, "type")
    return withFacts(
      kinds.size > 1 ? { ...supported, kinds: { by: "type", rows: kinds } } : merged(objects),
      facts
    )
  }
  const [object] = objects
  if (object !== type) return withFacts(rowOf(object!), facts)
  const fields = fieldsOf(objects)
  return withFacts(
    fields.size === 0 && object!.indexSignatures.length > 0 ? opaque : { ...supported, fields },
    facts
  )
}

const isPlain = ({ fields, form, items, kinds }: Row): boolean =>
  fields === undefined && items === undefined && kinds === undefined && form === undefined

/** By type, so that what two fields have in common is one row. */
const rows = new WeakMap<SchemaAST.AST, Row>()

const rowOf = (type: SchemaAST.AST): Row => {
  const known = rows.get(type)
  if (known !== undefined) return known
  const row = made(type)
  rows.set(type, row)
  return row
}

/** What becomes of the values of a Schema. */
export const rowOfSchema = ({ ast }: Schema.Constraint): Row => rowOf(ast)

/** The kinds of a Schema's objects, for another Schema that has them too. */
export const kindsOf = (schema: Schema.Constraint): { readonly [kind: string]: Row } =>
  Object.fromEntries(rowOfSchema(schema).kinds?.rows ?? [])

/** The contract of a request: what its Schema reads, and the vendor's other fields. */
export const familyOf = (schema: Schema.Constraint, { fields = {}, ...family }: Omit<Family, "fields"> & {
  readonly fields?: Table
}): Family => {
  const read: Fields = rowOfSchema(schema).fields ?? new Map()
  return { ...family, fields: new Map([...read, ...Object.entries(fields)]) }
}

/** The fields of a request that count against the limits of a body, by their paths. Only the elements of `tools` are looked into. */
export const countedFields = (schema: Schema.Constraint): ReadonlyArray<readonly [counted: Counted, path: string]> => {
  const found: Array<readonly [Counted, string]> = []
  const visit = (type: SchemaAST.AST, path: string): void => {
    const counted = factsOf(type)?.counted
    if (counted !== undefined) found.push([counted, path])
    for (const member of membersOf(type)) {
      if (SchemaAST.isArrays(member) && path === "tools") visit(member.rest[0]!, path)
      if (!SchemaAST.isObjects(member)) continue
      for (const { name, type } of member.propertySignatures) {
        visit(type, path === "" ? String(name) : `${path}.${String(name)}`)
      }
    }
  }
  visit(schema.ast, "")
  return found
}

/** The names of the fields, at any depth, whose values are JSON of the caller's own. */
export const jsonFields = (schema: Schema.Constraint): ReadonlySet<string> => {
  const names = new Set<string>()
  const visited = new Set<SchemaAST.AST>()
  const isJson = (type: SchemaAST.AST): boolean =>
    SchemaAST.isUnknown(type) || (SchemaAST.isObjects(type) && type.propertySignatures.length === 0)
  const visit = (type: SchemaAST.AST): void => {
    if (visited.has(type)) return
    visited.add(type)
    if (SchemaAST.isUnion(type)) type.types.forEach(visit)
    else if (SchemaAST.isArrays(type)) [...type.elements, ...type.rest].forEach(visit)
    else if (SchemaAST.isObjects(type)) {
      for (const { name, type: value } of type.propertySignatures) {
        const members = SchemaAST.isUnion(value) ? value.types : [value]
        if (members.some(isJson)) names.add(String(name))
        else visit(value)
      }
    }
  }
  visit(schema.ast)
  return names
}
