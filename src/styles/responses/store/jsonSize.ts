/**
 * Estimates the size of a JSON value in one step per node, whatever the length of its strings.
 */
import type { Json } from "../../../domain/json.ts"
import { type Cooperative, runSync, Slice } from "../../../domain/stream/cooperative.ts"

/** Weights of a value, of a field beside its name and value, and of each UTF-16 unit of strings and names. */
export interface JsonWeights {
  readonly node: number
  readonly field: number
  readonly unit: number
}

/** Bytes in memory, as an upper estimate: a header per value, and a reference per field. */
const inMemory: JsonWeights = { node: 24, field: 24, unit: 2 }

/** Characters of the JSON text, as a lower estimate. */
export const asText: JsonWeights = { node: 1, field: 1, unit: 1 }

/** The size of a JSON value, in slices; by default its bytes in memory. */
export function* jsonSizeSliced(value: Json, weights = inMemory, slice = new Slice()): Cooperative<number> {
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

/** `jsonSizeSliced` without yields. */
export const jsonSize = (value: Json): number => runSync(jsonSizeSliced(value))
