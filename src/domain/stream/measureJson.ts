/**
 * Measures JSON text before it is parsed. A value of two characters takes 64 bytes and more once it is parsed, and a deeply nested value
 * overflows the stack of whatever walks it: both are known only from the text.
 */
import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COLON, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./characters.ts"
import { type Cooperative, pieceChars, Slice } from "./cooperative.ts"

/** Most of what JSON text may have. */
export interface JsonBounds {
  /** Levels of lists and objects. */
  readonly depth: number
  /** Values, counted as `Measured` says. */
  readonly values: number
}

/** Keys of one object at most. Maps of names in a configuration have up to a hundred thousand. */
export const mostObjectKeys = 200_000

/** Bytes of memory that a parsed value takes, on average. */
const valueBytes = 64

/** The bytes of memory that so many parsed values take. */
export const bytesOfValues = (values: number): number => values * valueBytes

/** What JSON text has. */
export interface Measured {
  /** The values of lists and objects, keys not included. An empty list or object counts as two, because it takes as much. */
  readonly values: number
  /** The bound that the text exceeds. The rest of such text is not read. */
  readonly exceeded: "depth" | "values" | "keys" | undefined
  /** The top-level field in which the bound is exceeded, where there is one. */
  readonly field: string | undefined
}

/** Characters of a string that `indexOf` searches in the time that one step of the loop takes. */
const searched = 16

/** Characters of a field's name, with its quotation marks, that an error shows. */
const longestField = 256

/** The name that a key of the text says; `undefined` for one that is too long or no string. */
const nameOf = (text: string, from: number, to: number): string | undefined => {
  if (to <= from || to - from > longestField) return undefined
  try {
    return String(JSON.parse(text.slice(from, to)))
  } catch {
    return undefined
  }
}

/** Measures text that may be JSON. Reads each character at most once, in slices. Whether it is JSON is left for its parser. */
export function* measureJson(text: string, bounds: JsonBounds): Cooperative<Measured> {
  const slice = new Slice()
  /** Keys of the open objects, by their level. */
  const keys = [0]
  let depth = 0
  let values = 1
  let counted = 0
  let keyAt = 0
  let keyEnd = 0
  const excess = (exceeded: Measured["exceeded"]): Measured => ({
    values,
    exceeded,
    field: depth > 1 ? nameOf(text, keyAt, keyEnd) : undefined
  })
  for (let i = 0; i < text.length; i++) {
    if (i - counted >= pieceChars) {
      if (slice.add(0, i - counted)) yield slice.end()
      counted = i
    }
    switch (text.charCodeAt(i)) {
      case QUOTE: {
        const start = i
        // Strings are skipped; a quotation mark after an odd number of backslashes does not end one.
        for (;;) {
          const end = text.indexOf("\"", i + 1)
          if (end === -1) return { values, exceeded: undefined, field: undefined }
          let slashes = 0
          while (text.charCodeAt(end - 1 - slashes) === BACKSLASH) slashes++
          if (slice.add(0, 1 + slashes + Math.floor((end - i) / searched) + (i - counted))) yield slice.end()
          i = counted = end
          if (slashes % 2 === 0) break
        }
        if (depth === 1) {
          keyAt = start
          keyEnd = i + 1
        }
        break
      }
      case COMMA:
        if (++values > bounds.values) return excess("values")
        break
      case COLON:
        if (++keys[depth]! > mostObjectKeys) return excess("keys")
        break
      case OPEN_BRACKET:
      case OPEN_BRACE:
        keys[++depth] = 0
        if (depth > bounds.depth) return excess("depth")
        if (++values > bounds.values) return excess("values")
        break
      case CLOSE_BRACKET:
      case CLOSE_BRACE:
        // The parser refuses whatever follows.
        if (--depth <= 0) return { values, exceeded: undefined, field: undefined }
    }
  }
  return { values, exceeded: undefined, field: undefined }
}
