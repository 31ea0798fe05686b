/**
 * What a tool's schema says about the types of its parameters, as far as text in tags must be converted to them.
 */
import type { Json, JsonSchema, ToolDeclaration } from "../domain/Conversation.ts"

export type TypeName = "string" | "number" | "integer" | "boolean" | "object" | "array" | "null"

/** A schema that is known by where it stands: the root is there to resolve references. */
export interface SchemaAt {
  readonly schema: JsonSchema
  readonly root: JsonSchema
}

const isObject = (value: Json | undefined): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isTypeName = (value: Json): value is TypeName =>
  value === "string" || value === "number" || value === "integer" || value === "boolean" || value === "object" ||
  value === "array" || value === "null"

/** References and unions are followed this deep; what lies deeper is of any type. */
const maximalDepth = 8

const own = (object: JsonSchema, key: string): Json | undefined => Object.hasOwn(object, key) ? object[key] : undefined

/** Follows a local reference (`#/$defs/…`); a schema without one is given as it is. */
export const resolve = (at: SchemaAt): SchemaAt => {
  let schema = at.schema
  for (let depth = 0; depth < maximalDepth; depth++) {
    const reference = own(schema, "$ref")
    if (typeof reference !== "string" || !reference.startsWith("#")) break
    let target: Json | undefined = at.root
    for (const part of reference.slice(1).split("/").filter((part) => part !== "")) {
      target = isObject(target) ? own(target, part.replaceAll("~1", "/").replaceAll("~0", "~")) : undefined
    }
    if (!isObject(target)) break
    schema = target
  }
  return { schema, root: at.root }
}

const alternatives = (schema: JsonSchema): ReadonlyArray<JsonSchema> => {
  const found: Array<JsonSchema> = []
  for (const key of ["anyOf", "oneOf", "allOf"]) {
    const list = own(schema, key)
    if (Array.isArray(list)) { for (const member of list) if (isObject(member)) found.push(member) }
  }
  return found
}

const typeOfValue = (value: Json): TypeName =>
  value === null
    ? "null"
    : Array.isArray(value)
    ? "array"
    : (typeof value as "string" | "number" | "boolean" | "object")

const collect = (at: SchemaAt, into: Set<TypeName>, depth: number): void => {
  if (depth > maximalDepth) return
  const resolved = resolve(at)
  const { schema } = resolved
  const type = own(schema, "type")
  const values = own(schema, "enum")
  if (typeof type === "string" && isTypeName(type)) into.add(type)
  else if (Array.isArray(type)) { for (const one of type) if (isTypeName(one)) into.add(one) }
  else if (Array.isArray(values)) { for (const value of values) into.add(typeOfValue(value)) }
  else if (own(schema, "const") !== undefined) into.add(typeOfValue(own(schema, "const") ?? null))
  else if (own(schema, "properties") !== undefined) into.add("object")
  else if (own(schema, "items") !== undefined) into.add("array")
  else for (const member of alternatives(schema)) collect({ schema: member, root: at.root }, into, depth + 1)
}

/** The types that the schema allows; empty when it does not say. */
export const typesOf = (at: SchemaAt | undefined): ReadonlySet<TypeName> => {
  const types = new Set<TypeName>()
  if (at !== undefined) collect(at, types, 0)
  return types
}

const find = (
  at: SchemaAt | undefined,
  select: (schema: JsonSchema) => Json | undefined,
  depth = 0
): SchemaAt | undefined => {
  if (at === undefined || depth > maximalDepth) return undefined
  const { root, schema } = resolve(at)
  const found = select(schema)
  if (isObject(found)) return { schema: found, root }
  for (const member of alternatives(schema)) {
    const inMember = find({ schema: member, root }, select, depth + 1)
    if (inMember !== undefined) return inMember
  }
  return undefined
}

/** The schema of an array's elements. */
export const itemsOf = (at: SchemaAt | undefined): SchemaAt | undefined => find(at, (schema) => own(schema, "items"))

/** The schema of an object's property. */
export const propertyOf = (at: SchemaAt | undefined, name: string): SchemaAt | undefined =>
  find(at, (schema) => {
    const properties = own(schema, "properties")
    return isObject(properties) ? own(properties, name) : undefined
  })

/** True when the schema names its properties, so that a name can be known to be none of them. */
export const namesProperties = (at: SchemaAt | undefined): boolean =>
  find(at, (schema) => own(schema, "properties")) !== undefined

/** The schema of a tool's arguments. */
export const parametersOf = (tool: ToolDeclaration | undefined): SchemaAt | undefined =>
  tool?.parameters === undefined ? undefined : { schema: tool.parameters, root: tool.parameters }
