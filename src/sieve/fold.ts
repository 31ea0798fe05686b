/**
 * Look-alikes of the characters of markup. Models write markers with full-width and confusable characters; in a tag's head these are
 * folded to the ASCII characters that they resemble. Values are never folded.
 */
import { LESS } from "../domain/stream/characters.ts"

const groups: ReadonlyArray<readonly [ascii: string, lookalikes: string]> = [
  ["<", "\u2039\u27e8\u3008\ufe64\u2329"],
  [">", "\u203a\u27e9\u3009\ufe65\u232a"],
  ["|", "\u2223\u2502\u2503\u2758\u01c0\uffe8\u23d0\u01c1\u2016"],
  ["/", "\u2215\u2044\u29f8"],
  ["-", "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63"],
  ["_", "\u2581\u02cd\u2017"],
  ["=", "\ufe66\ua78a"],
  [":", "\u02d0\ua789\ufe55\u2236"],
  ["\"", "\u201c\u201d\u201e\u201f\u2033"],
  ["'", "\u2018\u2019\u201a\u201b\u2032"],
  [" ", "\u00a0\u2002\u2003\u2009\u202f\u3000"],
  ["a", "\u0430\u03b1"],
  ["c", "\u0441"],
  ["d", "\u0501"],
  ["e", "\u0435"],
  ["h", "\u04bb"],
  ["i", "\u0456\u03b9"],
  ["k", "\u043a\u03ba"],
  ["l", "\u04cf\u217c"],
  ["m", "\u043c"],
  ["n", "\u0578"],
  ["o", "\u043e\u03bf"],
  ["p", "\u0440\u03c1"],
  ["s", "\u0455"],
  ["t", "\u0442\u03c4"],
  ["u", "\u03c5"],
  ["v", "\u03bd\u0475"],
  ["x", "\u0445"],
  ["D", "\u216e"],
  ["L", "\u216c"],
  ["M", "\u041c\u039c"],
  ["S", "\u0405"],
  ["T", "\u0422\u03a4"]
]

const folded = new Map<number, number>()
for (const [ascii, lookalikes] of groups) {
  for (const character of lookalikes) folded.set(character.charCodeAt(0), ascii.charCodeAt(0))
}

/** The ASCII character that `c` looks like; `c` itself if it resembles no such character. */
export const fold = (c: number): number => c < 128 ? c : c >= 0xff01 && c <= 0xff5e ? c - 0xfee0 : folded.get(c) ?? c

/** True for `<` and its look-alikes. */
export const isLess = (c: number): boolean => fold(c) === LESS

const beyondAscii = /[^\0-\x7f]/

/** Folds every character of a text. */
export const foldText = (text: string): string => {
  if (!beyondAscii.test(text)) return text
  let out = ""
  for (let i = 0; i < text.length; i++) out += String.fromCharCode(fold(text.charCodeAt(i)))
  return out
}

/** `<` and all its look-alikes. */
export const openers: ReadonlyArray<number> = [
  LESS,
  0xff1c,
  ...[...folded].filter(([, ascii]) => ascii === LESS).map(([lookalike]) => lookalike)
]
