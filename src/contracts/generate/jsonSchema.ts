/**
 * Converts the vendor's schema objects (a subset of OpenAPI 3.0 with upper-case types) to JSON Schema.
 */
import type { JsonSchema } from "../../domain/Conversation.ts"
import type { Json } from "../../domain/json.ts"
import type { Cooperative, Slice } from "../../domain/stream/cooperative.ts"

export const isSchemaObject = (value: Json): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Converts the value of a keyword; counts the schemas within it into the slice. */
type Change = (value: Json, slice: Slice) => Json | Cooperative<Json>

function* nested(value: Json, slice: Slice): Cooperative<Json> {
  return isSchemaObject(value) ? yield* toJsonSchema(value, slice) : value
}

function* nestedList(value: Json, slice: Slice): Cooperative<Json> {
  if (!Array.isArray(value)) return value
  const list: Array<Json> = []
  for (const schema of value) {
    if (slice.add(1)) yield slice.end()
    list.push(yield* nested(schema, slice))
  }
  return list
}

function* nestedMap(value: Json, slice: Slice): Cooperative<Json> {
  if (!isSchemaObject(value)) return value
  const fields: Array<readonly [string, Json]> = []
  for (const name of Object.keys(value)) {
    if (slice.add(1, name.length)) yield slice.end()
    fields.push([name, yield* nested(value[name]!, slice)])
  }
  return Object.fromEntries(fields)
}

/** 64-bit integers are strings in the vendor's JSON. */
const count = (value: Json): Json => typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value

const lowerCase = (value: Json): Json =>
  typeof value === "string" ? value.toLowerCase() : Array.isArray(value) ? value.map(lowerCase) : value

/** JSON Schema's name of each keyword and the conversion of its value. Other keywords are copied unchanged. */
const keywords = new Map<string, readonly [name: string, change: Change]>([
  ["type", ["type", lowerCase]],
  ["items", ["items", nested]],
  ["additionalProperties", ["additionalProperties", nested]],
  ["additional_properties", ["additionalProperties", nested]],
  ["properties", ["properties", nestedMap]],
  ["$defs", ["$defs", nestedMap]],
  ["defs", ["$defs", nestedMap]],
  ["definitions", ["definitions", nestedMap]],
  ["ref", ["$ref", (value: Json) => value]],
  ["anyOf", ["anyOf", nestedList]],
  ["any_of", ["anyOf", nestedList]],
  ["oneOf", ["oneOf", nestedList]],
  ["allOf", ["allOf", nestedList]],
  ["prefixItems", ["prefixItems", nestedList]],
  ["prefix_items", ["prefixItems", nestedList]],
  ["example", ["examples", (value: Json) => [value]]],
  ...["Items", "Length", "Properties"].flatMap((what) =>
    ["min", "max"].flatMap((bound) =>
      [`${bound}${what}`, `${bound}_${what.toLowerCase()}`].map((key) => [key, [`${bound}${what}`, count]] as const)
    )
  )
])

/** Keywords that JSON Schema lacks; `nullable` becomes part of the type. */
const dropped = new Set(["nullable", "propertyOrdering", "property_ordering"])

const withNull = (schema: JsonSchema): JsonSchema => {
  const { enum: values, type } = schema
  const nullable = Array.isArray(values) && !values.includes(null) ? { ...schema, enum: [...values, null] } : schema
  if (typeof type === "string") return type === "null" ? schema : { ...nullable, type: [type, "null"] }
  return Array.isArray(schema.anyOf) ? { ...schema, anyOf: [...schema.anyOf, { type: "null" }] } : nullable
}

const isSliced = (change: Json | Cooperative<Json>): change is Cooperative<Json> =>
  typeof change === "object" && change !== null && Symbol.iterator in change && !Array.isArray(change)

/** Converts a schema, in slices. A schema that is JSON Schema already keeps its meaning. */
export function* toJsonSchema(schema: JsonSchema, slice: Slice): Cooperative<JsonSchema> {
  const fields: Array<readonly [string, Json]> = []
  for (const key of Object.keys(schema)) {
    if (slice.add(1, key.length)) yield slice.end()
    const value = schema[key]!
    if (dropped.has(key) || key === "type" && value === "TYPE_UNSPECIFIED") continue
    const keyword = keywords.get(key)
    if (keyword === undefined) {
      fields.push([key, value])
    } else {
      const changed = keyword[1](value, slice)
      fields.push([keyword[0], isSliced(changed) ? yield* changed : changed])
    }
  }
  const converted: JsonSchema = Object.fromEntries(fields)
  return schema.nullable === true ? withNull(converted) : converted
}
