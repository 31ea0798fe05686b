/**
 * What a JSON value costs in memory, cheaply: one step a node, none a character.
 */
import type { Json } from "../domain/Conversation.ts"
import { atOnce, Slice, type Sliced } from "../stream/slices.ts"

/** Bytes of a value's own head, and of a field or element that points at it. */
const perNode = 24

/** Bytes that a JSON value holds at most, roughly: strings count two bytes a UTF-16 unit. In slices. */
export function* jsonSizeSliced(value: Json): Sliced<number> {
  const slice = new Slice()
  const left: Array<Json> = [value]
  let size = 0
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    if (slice.add(1)) yield slice.end()
    size += perNode
    if (typeof next === "string") {
      size += 2 * next.length
    } else if (Array.isArray(next)) {
      for (const element of next) {
        if (slice.add(1)) yield slice.end()
        left.push(element)
      }
    } else if (typeof next === "object" && next !== null) {
      for (const key of Object.keys(next)) {
        if (slice.add(1)) yield slice.end()
        size += perNode + 2 * key.length
        left.push(Reflect.get(next, key))
      }
    }
  }
  return size
}

/** `jsonSizeSliced` at once. */
export const jsonSize = (value: Json): number => atOnce(jsonSizeSliced(value))
