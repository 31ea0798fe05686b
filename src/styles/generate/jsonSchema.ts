/**
 * From the vendor's schema objects (a select subset of OpenAPI 3.0 with upper-case types) to JSON Schema.
 */
import type { Json, JsonSchema } from "../../domain/Conversation.ts"

const isObject = (value: Json): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const nested = (value: Json): Json => isObject(value) ? toJsonSchema(value) : value

const nestedList = (value: Json): Json => Array.isArray(value) ? value.map(nested) : value

const nestedMap = (value: Json): Json =>
  isObject(value) ? Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, nested(schema)])) : value

/** 64-bit integers are strings in the vendor's JSON. */
const count = (value: Json): Json => typeof value === "string" && /^\d+$/.test(value) ? Number(value) : value

const lowerCase = (value: Json): Json =>
  typeof value === "string" ? value.toLowerCase() : Array.isArray(value) ? value.map(lowerCase) : value

/** JSON Schema's name for each keyword, and what its value needs. Keywords that are not here stay as they are. */
const keywords: ReadonlyMap<string, readonly [name: string, change: (value: Json) => Json]> = new Map([
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

/** Keywords that say nothing in JSON Schema; `nullable` is told by the type. */
const dropped = new Set(["nullable", "propertyOrdering", "property_ordering"])

const withNull = (schema: JsonSchema): JsonSchema => {
  const { enum: values, type } = schema
  const nullable = Array.isArray(values) && !values.includes(null) ? { ...schema, enum: [...values, null] } : schema
  if (typeof type === "string") return type === "null" ? schema : { ...nullable, type: [type, "null"] }
  return Array.isArray(schema.anyOf) ? { ...schema, anyOf: [...schema.anyOf, { type: "null" }] } : nullable
}

/** The schema as JSON Schema. One that is JSON Schema already stays what it is. */
export const toJsonSchema = (schema: JsonSchema): JsonSchema => {
  const fields: Array<readonly [string, Json]> = []
  for (const [key, value] of Object.entries(schema)) {
    if (dropped.has(key) || key === "type" && value === "TYPE_UNSPECIFIED") continue
    const keyword = keywords.get(key)
    fields.push(keyword === undefined ? [key, value] : [keyword[0], keyword[1](value)])
  }
  const converted: JsonSchema = Object.fromEntries(fields)
  return schema.nullable === true ? withNull(converted) : converted
}
