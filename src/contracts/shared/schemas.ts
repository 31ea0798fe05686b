/** Schemas of arguments and of replies in the form that contracts accept. */
import type { JsonSchema } from "../../domain/Conversation.ts"
import type { Json } from "../../domain/json.ts"
import { isFields } from "../../domain/replyExtras.ts"

/** What describes the arguments in place of their type. */
const combined = ["$ref", "anyOf", "oneOf", "allOf"] as const

/** The schema of an object with a list of properties, if only an empty one, and with a schema of the items of each list. */
export const withProperties = (schema: JsonSchema = {}): JsonSchema =>
  withItems(
    Object.hasOwn(schema, "properties") || (schema["type"] ?? "object") !== "object" ||
      combined.some((name) => Object.hasOwn(schema, name))
      ? schema
      : { type: "object", ...schema, properties: {} }
  )

/** Where a schema has other ones: one, a list of them, or an object of them. */
const within = ["items", "additionalProperties", ...combined.slice(1), "properties", "$defs", "definitions"]

/** A list of schemas, or an object of them by any names. */
const holdsMany: ReadonlySet<string> = new Set(["properties", "$defs", "definitions"])

/** The nesting to which lists are looked for. */
const deepest = 32

/** What was there before where nothing in it is another value. */
const kept = <A extends object>(before: A, after: A): A =>
  Object.entries(before).every(([name, value]) => value === Reflect.get(after, name)) ? before : after

/** The schema in which each list says something of its items, which some servers ask for. A schema without such a list stays as it is. */
const withItems = (schema: JsonSchema, depth = 0): JsonSchema => {
  if (depth === deepest) return schema
  const of = (value: Json): Json => isFields(value) ? withItems(value, depth + 1) : value
  const changed: Record<string, Json> = { ...schema }
  for (const name of within) {
    const value = schema[name]
    if (Array.isArray(value)) changed[name] = kept(value, value.map(of))
    else if (isFields(value)) {
      changed[name] = holdsMany.has(name)
        ? kept(value, Object.fromEntries(Object.entries(value).map(([key, one]) => [key, of(one)])))
        : of(value)
    }
  }
  const lacksItems = schema["type"] === "array" && schema["items"] === undefined && schema["prefixItems"] === undefined
  return lacksItems ? { ...changed, items: {} } : kept(schema, changed)
}

/** What a strict schema may say. */
const strictWords: ReadonlySet<string> = new Set(
  ("type properties required additionalProperties items anyOf $ref $defs definitions enum const title description format pattern minimum maximum " +
    "exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems").split(" ")
)

const isStrictPart = (schema: Json, depth: number): boolean => {
  if (!isFields(schema) || depth === deepest || !Object.keys(schema).every((name) => strictWords.has(name))) {
    return false
  }
  const {
    $defs = {},
    additionalProperties,
    anyOf = [],
    definitions = {},
    items,
    properties = {},
    required = [],
    type
  } = schema
  const isPart = (part: Json) => isStrictPart(part, depth + 1)
  const arePart = (parts: Json) => isFields(parts) && Object.values(parts).every(isPart)
  const isObject = type === "object" || (Array.isArray(type) && type.includes("object")) ||
    schema["properties"] !== undefined
  const named = new Set(Array.isArray(required) ? required : [])
  return (!isObject ||
    (additionalProperties === false &&
      Object.keys(isFields(properties) ? properties : {}).every((name) => named.has(name)))) &&
    arePart(properties) && arePart($defs) && arePart(definitions) &&
    (items === undefined || isPart(items)) && Array.isArray(anyOf) && anyOf.every(isPart)
}

/**
 * Whether a schema may be sent with `strict`: it is an object, and each of its objects requires all of its properties and has no others. One step for each
 * part of it.
 */
export const isStrictSchema = (schema: JsonSchema): boolean => schema["type"] === "object" && isStrictPart(schema, 0)
