/**
 * Which fields of an object a Schema reads, so that those that it ignores need not be copied: there may be very many.
 */
import * as SchemaAST from "effect/SchemaAST"

/** What is read of an object. */
export interface FieldsRead {
  /** The types of the fields that are read by name. */
  readonly named: ReadonlyMap<PropertyKey, Types>
  /** All others are read too. */
  readonly others: boolean
}

/** Types of which a value may have any; the same list each time for the same place, as what was found is kept by it. */
export type Types = ReadonlyArray<SchemaAST.AST>

/** The members of unions, nested ones included; else the type itself. */
const membersOf = (type: SchemaAST.AST): Types =>
  SchemaAST.isUnion(type)
    ? type.types.flatMap(membersOf)
    : SchemaAST.isSuspend(type)
    ? membersOf(type.thunk())
    : [type]

const find = (types: Types): FieldsRead => {
  const objects = types.flatMap((type) => membersOf(SchemaAST.toEncoded(type))).filter(SchemaAST.isObjects)
  const named = new Map<PropertyKey, Array<SchemaAST.AST>>()
  for (const { propertySignatures } of objects) {
    for (const { name, type } of propertySignatures) {
      const known = named.get(name)
      if (known === undefined) named.set(name, [type])
      else known.push(type)
    }
  }
  return { named, others: objects.every(({ indexSignatures }) => indexSignatures.length > 0) }
}

const found = new WeakMap<Types, FieldsRead>()

/**
 * What is read of an object that has one of these types. A member of a union that takes any field counts with those that it
 * names only: where it may be meant, the object has to be taken as a whole.
 */
export const fieldsRead = (types: Types): FieldsRead => {
  const known = found.get(types) ?? find(types)
  found.set(types, known)
  return known
}
