/** Schemas of arguments in the form that contracts accept. */
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
