/**
 * Reads untrusted JSON: a value that is missing or of another type is `undefined`.
 */
import type { JsonRecord } from "../domain/json.ts"

/** A string that is not empty. */
export const asString = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

/** A count, of tokens or calls: an integer up to 10^12. */
export const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 1e12 ? value : undefined

/** The text of a parsed value; `undefined` if it is nested too deeply. */
export const writeJson = (value: JsonRecord): string | undefined => {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

/** The value of JSON text; `undefined` for other text. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
