/**
 * What a JSON value costs in memory, cheaply: one step a node, none a character.
 */
import type { Json } from "../domain/Conversation.ts"

/** Bytes of a value's own head, and of a field or element that points at it. */
const perNode = 24

/** Bytes that a JSON value holds at most, roughly: strings count two bytes a UTF-16 unit. */
export const jsonSize = (value: Json): number => {
  if (typeof value === "string") return perNode + 2 * value.length
  if (typeof value !== "object" || value === null) return perNode
  let size = perNode
  if (Array.isArray(value)) {
    for (const element of value) size += jsonSize(element)
    return size
  }
  for (const [key, field] of Object.entries(value)) size += perNode + 2 * key.length + jsonSize(field)
  return size
}
