/**
 * Reading JSON that nobody vouches for: what is not there, or is something else, is `undefined`.
 */
import type { JsonRecord } from "../../domain/json.ts"

/** A string that says something. */
export const asString = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

/** A count, of tokens or calls: an integer up to 10^12. */
export const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 1e12 ? value : undefined

/** The text of what was parsed; `undefined` where it is nested too deeply to be written. */
export const writeJson = (value: JsonRecord): string | undefined => {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
