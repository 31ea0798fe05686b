/**
 * Character codes and character classes for parsers.
 */

export const TAB = 9
export const NEWLINE = 10
export const CARRIAGE_RETURN = 13
export const SPACE = 32
export const EXCLAMATION_MARK = 33
export const QUOTE = 34
export const HASH = 35
export const DOLLAR = 36
export const AMPERSAND = 38
export const APOSTROPHE = 39
export const OPEN_PARENTHESIS = 40
export const CLOSE_PARENTHESIS = 41
export const PLUS = 43
export const COMMA = 44
export const HYPHEN = 45
export const FULL_STOP = 46
export const SLASH = 47
export const ZERO = 48
export const COLON = 58
export const SEMICOLON = 59
export const LESS = 60
export const EQUALS = 61
export const GREATER = 62
export const OPEN_BRACKET = 91
export const BACKSLASH = 92
export const CLOSE_BRACKET = 93
export const UNDERSCORE = 95
export const BACKTICK = 96
export const LOWER_U = 117
export const LOWER_X = 120
export const OPEN_BRACE = 123
export const BAR = 124
export const CLOSE_BRACE = 125
export const TILDE = 126
export const ELLIPSIS = 0x2026
export const BYTE_ORDER_MARK = 0xfeff

/** A blank within a line. */
export const isSpace = (c: number): boolean => c === SPACE || c === TAB || c === CARRIAGE_RETURN

/** A blank or a newline. */
export const isBlank = (c: number): boolean => c === SPACE || c === NEWLINE || c === CARRIAGE_RETURN || c === TAB

export const isDigit = (c: number): boolean => c >= 48 && c <= 57

/** True for the capital letters of ASCII. */
export const isUpper = (c: number): boolean => c >= 65 && c <= 90

/** True for the letters of ASCII. */
export const isLetter = (c: number): boolean => (c >= 97 && c <= 122) || isUpper(c)

export const isHex = (c: number): boolean => isDigit(c) || (c >= 97 && c <= 102) || (c >= 65 && c <= 70)

/** A test for the characters of `members`, all of ASCII. False for negative codes. */
export const oneOf = (members: string): (c: number) => boolean => {
  const table = new Uint8Array(128)
  for (let i = 0; i < members.length; i++) table[members.charCodeAt(i)] = 1
  return (c) => c >= 0 && c < 128 && table[c] === 1
}
