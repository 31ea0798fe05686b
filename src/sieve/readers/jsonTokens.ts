/**
 * Small JSON tokens that a form must know whole: keys and short strings.
 */
import { BACKSLASH, QUOTE } from "../../domain/stream/characters.ts"
import type { Reading, Source } from "../reading.ts"
import { END, peek, takeUntil } from "../reading.ts"
import { isKeyCharacter, isKeyStart } from "./jsonText.ts"

const simple: { readonly [letter: string]: string } = {
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
  "\"": "\"",
  "\\": "\\",
  "/": "/"
}

/** The text that one escape stands for; an invalid one stands for itself. `undefined` while it is not complete. */
export const decodeEscape = (escape: string): string | undefined => {
  if (escape.length < 2) return undefined
  const letter = escape.charAt(1)
  if (letter !== "u") return simple[letter] ?? escape
  if (!/^[0-9a-fA-F]*$/.test(escape.slice(2))) return escape
  return escape.length < 6 ? undefined : String.fromCharCode(Number.parseInt(escape.slice(2), 16))
}

const endsRun = (c: number): boolean => c === QUOTE || c === BACKSLASH

/** Reads a string from its quotation mark and gives the text it stands for; `undefined` when it does not end. */
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

/** Reads a key, quoted or not, whose first character is `c`; `undefined` when it is none. */
export function* readKey(source: Source, c: number): Reading<string | undefined> {
  if (c === QUOTE) return yield* readString(source)
  if (c === END || !isKeyStart(c)) return undefined
  return yield* takeUntil(source, (d) => !isKeyCharacter(d))
}
