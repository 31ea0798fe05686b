/**
 * JSON by the character: what its tokens are made of, and the escaping of texts.
 */
import {
  DOLLAR,
  FULL_STOP,
  HYPHEN,
  isDigit,
  isLetter,
  oneOf,
  PLUS,
  UNDERSCORE,
  ZERO
} from "../../domain/stream/characters.ts"

/** What may stand behind a backslash in a string, but `u`. */
export const isSimpleEscape = oneOf("\"\\/bfnrt")

/** True for what an unquoted key may hold; it may not begin with a digit or a hyphen. */
export const isKeyCharacter = (c: number): boolean =>
  isLetter(c) || isDigit(c) || c === UNDERSCORE || c === DOLLAR || c === HYPHEN

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
 * The inside of the JSON string for a text. Unlike `JSON.stringify` it escapes each character by itself, so that escaping
 * the pieces of a text gives the pieces of the escaped text, even where a surrogate pair was cut.
 */
// oxlint-disable-next-line no-control-regex
export const escapeText = (text: string): string => text.replace(/["\\\u0000-\u001f]/g, escapeCharacter)

/** The JSON string for a text. */
export const quoteText = (text: string): string => "\"" + escapeText(text) + "\""

const isExponent = oneOf("eE")

/** A number's next state after a character: -1 nothing yet, 0 sign, 1 zero, 2 integer, 3 point,
 * 4 fraction, 5 e, 6 its sign, 7 exponent. Gives -1 where the number ends. */
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

export const isWholeNumber = (state: number): boolean => state === 1 || state === 2 || state === 4 || state === 7
