/**
 * Reads untrusted JSON: a value that is missing or of another type is `undefined`.
 */
import { isRecord, type Json, type JsonFields, type JsonRecord } from "../../domain/json.ts"
import { runSync } from "../../domain/stream/cooperative.ts"
import { bytesOfValues, measureJson } from "../../domain/stream/measureJson.ts"
import { mostTokens } from "../../domain/units.ts"

/** A string that is not empty. */
export const asString = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

/** A count, of tokens or calls: an integer up to 10^12. */
export const asCount = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 1e12 ? value : undefined

/** A count of tokens: an integer up to `mostTokens`. */
export const asTokens = (value: unknown): number | undefined => {
  const count = asCount(value)
  return count !== undefined && count <= mostTokens ? count : undefined
}

/** The text of a parsed value; `undefined` if it is nested too deeply. */
export const writeJson = (value: JsonRecord): string | undefined => {
  try {
    return JSON.stringify(value)
  } catch {
    return undefined
  }
}

/** Values that one text of a server has at most; the numbers of vectors have their own bound. */
const mostValues = 2_000_000

/** Characters of a text that is parsed without being measured: its values are no more than its characters. */
const smallText = 64 * 1024

/** The bytes of memory that the values of a text take; `undefined` if it has more than `most` values, or an object with too many keys. */
export const valueBytesOf = (text: string, most = mostValues): number | undefined => {
  const { exceeded, values } = runSync(measureJson(text, { depth: Infinity, values: most }))
  return exceeded === undefined ? bytesOfValues(values) : undefined
}

/** The value of JSON text; `undefined` for other text, and for text with more than `most` values. */
export const parseJson = (text: string, most = mostValues): unknown => {
  if (text.length > smallText && valueBytesOf(text, most) === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** True for the JSON text of an object. */
export const isObjectText = (value: unknown): value is string => typeof value === "string" && isRecord(parseJson(value))

/** Fields that are kept of one object, and the depth to which their values may be nested. */
export const mostFields = 64
const deepest = 64

/** True for a value that is nested no deeper than what is kept of a server's words. */
export const isShallow = (value: unknown, depth = deepest): boolean => {
  if (typeof value !== "object" || value === null) return true
  if (depth === 0) return false
  for (const field of Object.values(value)) if (!isShallow(field, depth - 1)) return false
  return true
}

/** The fields of an object that are not modelled and that `isKept`; `undefined` without any. */
export const otherFields = (
  value: JsonRecord,
  supported: ReadonlySet<string>,
  isKept: (field: unknown, name: string) => boolean
): JsonFields | undefined => {
  let found: Record<string, Json> | undefined
  let count = 0
  for (const name of Object.keys(value)) {
    if (supported.has(name)) continue
    const field = value[name]
    if (!isKept(field, name) || count++ >= mostFields || !isShallow(field)) continue
    found ??= {}
    found[name] = field as Json
  }
  return found
}
