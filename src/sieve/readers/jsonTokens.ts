/**
 * The tokens of JSON: what they consist of, escaping, and the short ones that a form needs whole (keys and short strings).
 */
import {
  BACKSLASH,
  FULL_STOP,
  HYPHEN,
  isDigit,
  isLetter,
  oneOf,
  PLUS,
  QUOTE,
  ZERO
} from "../../domain/stream/characters.ts"
import { END, peek, type Reading, type Source, takeUntil } from "../reading.ts"

/** The characters that may follow a backslash in a string, except `u`. */
export const isSimpleEscape = oneOf("\"\\/bfnrt")

const isKeySymbol = oneOf("_$-")

/** True for the characters of an unquoted key, which begins with neither a digit nor a hyphen. */
export const isKeyCharacter = (c: number): boolean => isLetter(c) || isDigit(c) || isKeySymbol(c)

export const isKeyStart = (c: number): boolean => isKeyCharacter(c) && !isDigit(c) && c !== HYPHEN

const escapes: { readonly [character: string]: string } = {
  "\"": "\\\"",
  "\\": "\\\\",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t"
}

export const escapeCharacter = (character: string): string =>
  escapes[character] ?? "\\u" + character.charCodeAt(0).toString(16).padStart(4, "0")

/**
 * Escapes a text for a JSON string. Unlike `JSON.stringify` it escapes each UTF-16 unit by itself: the escaped pieces of a text
 * concatenate to the escaped text, even if a cut splits a surrogate pair.
 */
export const escapeText = (text: string): string => text.replace(/["\\]|[^\u0020-\uffff]/g, escapeCharacter)

/** The JSON string for a text. */
export const quoteText = (text: string): string => "\"" + escapeText(text) + "\""

const isExponent = oneOf("eE")

/**
 * The state of a number after one more character; -1 when the character does not continue the number. States: -1 nothing yet, 0 sign,
 * 1 zero, 2 integer, 3 point, 4 fraction, 5 e, 6 sign of the exponent, 7 exponent.
 */
export const nextInNumber = (state: number, c: number): number => {
  if (state === -1 && c === HYPHEN) return 0
  if (isDigit(c)) {
    if (state <= 0) return c === ZERO ? 1 : 2
    if (state === 1) return -1
    if (state === 3) return 4
    if (state === 5 || state === 6) return 7
    return state
  }
  if (c === FULL_STOP) return state === 1 || state === 2 ? 3 : -1
  if (isExponent(c)) return state === 1 || state === 2 || state === 4 ? 5 : -1
  if (c === PLUS || c === HYPHEN) return state === 5 ? 6 : -1
  return -1
}

/** True for the states in which a number may end. */
export const isWholeNumber = (state: number): boolean => state === 1 || state === 2 || state === 4 || state === 7

const unescapes: { readonly [escape: string]: string } = {
  ...Object.fromEntries(Object.entries(escapes).map(([character, escape]) => [escape, character])),
  "\\/": "/"
}

/** The text that an escape stands for; an invalid escape stands for itself. `undefined` while it is incomplete. */
export const decodeEscape = (escape: string): string | undefined => {
  if (escape.length < 2) return undefined
  const letter = escape.charAt(1)
  if (letter !== "u") return unescapes[escape] ?? escape
  if (!/^[0-9a-fA-F]*$/.test(escape.slice(2))) return escape
  return escape.length < 6 ? undefined : String.fromCharCode(Number.parseInt(escape.slice(2), 16))
}

const endsRun = (c: number): boolean => c === QUOTE || c === BACKSLASH

/** Reads a string from its quotation mark and returns its text; `undefined` when the reply ends inside it. */
export function* readString(source: Source): Reading<string | undefined> {
  source.pos++
  let text = ""
  for (;;) {
    text += yield* takeUntil(source, endsRun)
    const c = yield* peek(source)
    if (c === END) return undefined
    source.pos++
    if (c === QUOTE) return text
    let escape = "\\"
    let decoded: string | undefined
    while (decoded === undefined) {
      const d = yield* peek(source)
      if (d === END) return undefined
      escape += String.fromCharCode(d)
      source.pos++
      decoded = decodeEscape(escape)
    }
    text += decoded
  }
}

/** Reads a key, quoted or not, whose first character is `c`; `undefined` for anything else. */
export function* readKey(source: Source, c: number): Reading<string | undefined> {
  if (c === QUOTE) return yield* readString(source)
  if (c === END || !isKeyStart(c)) return undefined
  return yield* takeUntil(source, (d) => !isKeyCharacter(d))
}
