/** Schemas of arguments in the form that contracts accept. */
import type { JsonSchema } from "../../domain/Conversation.ts"

/** What describes the arguments in place of their type. */
const combined = ["$ref", "anyOf", "oneOf", "allOf"] as const

/** The schema of an object with a list of properties, if only an empty one. */
export const withProperties = (schema: JsonSchema = {}): JsonSchema =>
  Object.hasOwn(schema, "properties") || (schema["type"] ?? "object") !== "object" ||
    combined.some((name) => Object.hasOwn(schema, name))
    ? schema
    : { type: "object", ...schema, properties: {} }
