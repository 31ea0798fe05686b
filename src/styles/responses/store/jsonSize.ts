/**
 * How large a JSON value is, cheaply: one step a node, none a character.
 */
import type { Json } from "../../../domain/Conversation.ts"
import { atOnce, Slice, type Sliced } from "../../../domain/stream/slices.ts"

/** What counts how much: a value, a field beside its name and value, and each UTF-16 unit of strings and names. */
export interface JsonWeights {
  readonly node: number
  readonly field: number
  readonly unit: number
}

/** Bytes that it holds at most, roughly: a head of its own, and one for each field or element that points at it. */
const inMemory: JsonWeights = { node: 24, field: 24, unit: 2 }

/** Characters of its text, and no more than that has. */
export const asText: JsonWeights = { node: 1, field: 1, unit: 1 }

/** The size of a JSON value, in slices; in memory unless other weights are given. */
export function* jsonSizeSliced(value: Json, weights = inMemory, slice = new Slice()): Sliced<number> {
  const left: Array<Json> = [value]
  let size = 0
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (slice.add(1)) yield slice.end()
    size += weights.node
    if (typeof next === "string") {
      size += weights.unit * next.length
    } else if (Array.isArray(next)) {
      for (const element of next) {
        if (slice.add(1)) yield slice.end()
        left.push(element)
      }
    } else if (typeof next === "object" && next !== null) {
      for (const key of Object.keys(next)) {
        if (slice.add(1)) yield slice.end()
        size += weights.field + weights.unit * key.length
        left.push(Reflect.get(next, key))
      }
    }
  }
  return size
}

/** `jsonSizeSliced` at once. */
export const jsonSize = (value: Json): number => atOnce(jsonSizeSliced(value))
