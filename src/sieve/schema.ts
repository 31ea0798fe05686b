/**
 * The types that a tool's schema gives to its parameters, to which text in tags is converted.
 */
import type { JsonSchema, ToolDeclaration } from "../domain/Conversation.ts"
import { isRecord, type Json } from "../domain/json.ts"

export type TypeName = "string" | "number" | "integer" | "boolean" | "object" | "array" | "null"

/** A schema within its root schema, against which references are resolved. */
export interface SchemaAt {
  readonly schema: JsonSchema
  readonly root: JsonSchema
}

const isTypeName = (value: Json): value is TypeName =>
  value === "string" || value === "number" || value === "integer" || value === "boolean" || value === "object" ||
  value === "array" || value === "null"

/** The longest chain of references that is followed; anything beyond has any type. */
const longestChain = 8

/** The longest reference that is followed, in characters. */
const longestReference = 1000

/** The most schemas that are visited in one tool; anything beyond has any type. */
const mostNodes = 1000

const own = (object: JsonSchema, key: string): Json | undefined => Object.hasOwn(object, key) ? object[key] : undefined

const alternatives = function*(schema: JsonSchema): Iterable<JsonSchema> {
  for (const key of ["anyOf", "oneOf", "allOf"]) {
    const list = own(schema, key)
    if (Array.isArray(list)) { for (const member of list as ReadonlyArray<Json>) if (isRecord(member)) yield member }
  }
}

/** The walk over one tool's schema: results are kept per node, and the visited nodes are counted. */
class Walk {
  nodes = 0
  readonly #root: JsonSchema
  readonly #targets = new Map<JsonSchema, JsonSchema>()
  readonly #members = new Map<JsonSchema, ReadonlyArray<JsonSchema>>()

  constructor(root: JsonSchema) {
    this.#root = root
  }

  /** Follows a local reference (`#/$defs/…`); returns a schema without one unchanged. */
  resolve(schema: JsonSchema): JsonSchema {
    if (own(schema, "$ref") === undefined) return schema
    let target = this.#targets.get(schema)
    if (target === undefined) {
      target = schema
      for (let i = 0; i < longestChain; i++) target = this.#follow(target)
      this.#targets.set(schema, target)
    }
    return target
  }

  #follow(schema: JsonSchema): JsonSchema {
    const reference = own(schema, "$ref")
    if (typeof reference !== "string" || !reference.startsWith("#") || reference.length > longestReference) {
      return schema
    }
    let target: Json | undefined = this.#root
    for (const part of reference.slice(1).split("/").filter((part) => part !== "")) {
      target = isRecord(target) ? own(target, part.replaceAll("~1", "/").replaceAll("~0", "~")) : undefined
    }
    return isRecord(target) ? target : schema
  }

  /** A schema and, recursively, the members of its unions, each once. */
  members(schema: JsonSchema): ReadonlyArray<JsonSchema> {
    let members = this.#members.get(schema)
    if (members === undefined) {
      const found = new Set<JsonSchema>()
      this.#collect(schema, found)
      members = [...found]
      this.#members.set(schema, members)
    }
    return members
  }

  #collect(schema: JsonSchema, into: Set<JsonSchema>): void {
    const waiting = [schema]
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (this.nodes >= mostNodes) return
      this.nodes++
      const resolved = this.resolve(next)
      if (into.has(resolved)) continue
      into.add(resolved)
      // In order, and no more than may be visited.
      const further: Array<JsonSchema> = []
      for (const member of alternatives(resolved)) {
        if (further.length >= mostNodes) break
        further.push(member)
      }
      for (let i = further.length - 1; i >= 0; i--) waiting.push(further[i]!)
    }
  }
}

const walks = new WeakMap<JsonSchema, Walk>()

const walkOf = ({ root }: SchemaAt): Walk => {
  let walk = walks.get(root)
  if (walk === undefined) {
    walk = new Walk(root)
    walks.set(root, walk)
  }
  return walk
}

/** The number of schemas visited below a root so far. */
export const visitedNodes = (root: JsonSchema): number => walks.get(root)?.nodes ?? 0

/** Follows a local reference (`#/$defs/…`); returns a schema without one unchanged. */
export const resolve = (at: SchemaAt): SchemaAt => ({ schema: walkOf(at).resolve(at.schema), root: at.root })

const typeOfValue = (value: Json): TypeName =>
  value === null
    ? "null"
    : Array.isArray(value)
    ? "array"
    : (typeof value as "string" | "number" | "boolean" | "object")

/** Adds the types that a schema states itself; returns false when it states no type. */
const statedTypes = (schema: JsonSchema, into: Set<TypeName>): boolean => {
  const type = own(schema, "type")
  const values = own(schema, "enum")
  if (typeof type === "string" && isTypeName(type)) into.add(type)
  else if (Array.isArray(type)) { for (const one of type) if (isTypeName(one)) into.add(one) }
  else if (Array.isArray(values)) { for (const value of values) into.add(typeOfValue(value)) }
  else if (own(schema, "const") !== undefined) into.add(typeOfValue(own(schema, "const") ?? null))
  else if (own(schema, "properties") !== undefined) into.add("object")
  else if (own(schema, "items") !== undefined) into.add("array")
  else return false
  return true
}

/** The types that the schema allows; empty when it states no type. */
export const typesOf = (at: SchemaAt | undefined): ReadonlySet<TypeName> => {
  const types = new Set<TypeName>()
  if (at === undefined) return types
  const members = walkOf(at).members(at.schema)
  const [self] = members
  if (self === undefined || statedTypes(self, types)) return types
  for (const member of members) statedTypes(member, types)
  return types
}

const find = (
  at: SchemaAt | undefined,
  select: (schema: JsonSchema) => Json | undefined
): SchemaAt | undefined => {
  if (at === undefined) return undefined
  for (const member of walkOf(at).members(at.schema)) {
    const found = select(member)
    if (isRecord(found)) return { schema: found, root: at.root }
  }
  return undefined
}

/** The schema of an array's elements. */
export const itemsOf = (at: SchemaAt | undefined): SchemaAt | undefined => find(at, (schema) => own(schema, "items"))

/** The schema of an object's property. */
export const propertyOf = (at: SchemaAt | undefined, name: string): SchemaAt | undefined =>
  find(at, (schema) => {
    const properties = own(schema, "properties")
    return isRecord(properties) ? own(properties, name) : undefined
  })

/** True when the schema names its properties, so that unknown names can be recognized. */
export const namesProperties = (at: SchemaAt | undefined): boolean =>
  find(at, (schema) => own(schema, "properties")) !== undefined

/** The schema of a tool's arguments. */
export const parametersOf = (tool: ToolDeclaration | undefined): SchemaAt | undefined =>
  tool?.parameters === undefined ? undefined : { schema: tool.parameters, root: tool.parameters }
