/** A small value that fits a JSON Schema, with the words of a question where it asks for text. */
import type { JsonSchema } from "../../domain/Conversation.ts"
import { isRecord, type Json } from "../../domain/json.ts"
import { itemsOf, propertyOf, resolve, type SchemaAt, typesOf } from "../../sieve/schema.ts"

/** Nested objects are filled this deep. */
const maxDepth = 4

const namesOf = (value: Json | undefined): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((name) => typeof name === "string") : isRecord(value) ? Object.keys(value) : []

const number = (schema: JsonSchema, words: string): number => {
  const least = schema["minimum"]
  const named = /-?\d+(?:\.\d+)?/.exec(words)?.[0]
  return named !== undefined ? Number(named) : typeof least === "number" ? least : 1
}

const valueOf = (of: SchemaAt | undefined, words: string, depth: number): Json => {
  if (of === undefined) return words
  const at = resolve(of)
  const { schema } = at
  const fixed = schema["const"] ?? schema["default"]
  if (fixed !== undefined) return fixed
  const choices = schema["enum"]
  if (Array.isArray(choices) && choices.length > 0) {
    return choices.find((choice) => typeof choice === "string" && words.includes(choice)) ?? choices[0]!
  }
  const types = typesOf(at)
  if (types.has("string") || types.size === 0) return words
  if (types.has("object")) {
    if (depth >= maxDepth) return {}
    const required = namesOf(schema["required"])
    const names = required.length > 0 ? required : namesOf(schema["properties"])
    return Object.fromEntries(names.map((name) => [name, valueOf(propertyOf(at, name), words, depth + 1)]))
  }
  if (types.has("array")) return depth >= maxDepth ? [] : [valueOf(itemsOf(at), words, depth + 1)]
  if (types.has("integer")) return Math.trunc(number(schema, words))
  if (types.has("number")) return number(schema, words)
  return types.has("boolean") ? true : null
}

/** A value for `schema` with its required properties, or with all of them if no property is required. */
export const exampleFor = (schema: JsonSchema, words: string): Json => valueOf({ schema, root: schema }, words, 0)
