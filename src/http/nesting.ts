/** How deep JSON text nests, before it is parsed: a parsed value that nests deep breaks what walks it. */
import { type Cooperative, pieceChars, Slice } from "../domain/stream/cooperative.ts"

/** Characters of a string that are searched for its end in the time that one takes to be looked at. */
const searched = 16

/** True when arrays and objects in the JSON text nest deeper than `limit`. Reads each character at most once, in slices. */
export function* nestsTooDeep(text: string, limit: number): Cooperative<boolean> {
  const slice = new Slice()
  let depth = 0
  let counted = 0
  for (let i = 0; i < text.length; i++) {
    if (i - counted >= pieceChars) {
      if (slice.add(0, i - counted)) yield slice.end()
      counted = i
    }
    switch (text.charCodeAt(i)) {
      case 0x22: {
        // Strings are jumped over; a quote that an odd run of backslashes precedes is not their end.
        for (;;) {
          const end = text.indexOf("\"", i + 1)
          if (end === -1) return false
          let slashes = 0
          while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes++
          if (slice.add(0, 1 + slashes + Math.floor((end - i) / searched) + (i - counted))) yield slice.end()
          i = counted = end
          if (slashes % 2 === 0) break
        }
        break
      }
      case 0x5b:
      case 0x7b:
        if (++depth > limit) return true
        break
      case 0x5d:
      case 0x7d:
        depth--
    }
  }
  return false
}
