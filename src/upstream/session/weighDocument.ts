/**
 * What the document of a session reply weighs: it may grow in parts that are never shown, and is held whole.
 */
import { isRecord } from "../../domain/json.ts"

/** The most that the document may weigh, in characters. */
export const mostWeight = 48 * 1024 * 1024

/** Characters received after which it is weighed, at the least: how often it is weighed falls as it grows. */
export const weighedAfter = 16 * 1024 * 1024

/** Characters of a JSON value, and some for each of its parts; not much more than `mostWeight` is counted. */
export const weigh = (value: unknown): number => {
  let weight = 0
  const left: Array<unknown> = [value]
  while (left.length > 0 && weight <= mostWeight) {
    const next = left.pop()
    weight += typeof next === "string" ? next.length + 8 : 8
    if (Array.isArray(next)) { for (const element of next) left.push(element) }
    else if (isRecord(next)) {
      for (const key of Object.keys(next)) {
        weight += key.length
        left.push(next[key])
      }
    }
  }
  return weight
}
