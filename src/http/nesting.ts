/** How deep JSON text nests, before it is parsed: a parsed value that nests deep breaks what walks it. */
import { Slice, type Sliced } from "../stream/slices.ts"

/** True when arrays and objects in the JSON text nest deeper than `limit`. Reads each character at most once, in slices. */
export function* nestsTooDeep(text: string, limit: number): Sliced<boolean> {
  const slice = new Slice()
  let depth = 0
  let counted = 0
  for (let i = 0; i < text.length; i++) {
    if ((i & 0xfff) === 0 || i - counted > 0xffff) {
      if (slice.add(0, i - counted)) yield slice.end()
      counted = i
    }
    switch (text.charCodeAt(i)) {
      case 0x22: {
        i = endOfString(text, i)
        if (i === -1) return false
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

/** Where the string that begins at `start` ends, or -1. A quote that an odd run of backslashes precedes is not its end. */
const endOfString = (text: string, start: number): number => {
  for (let end = text.indexOf("\"", start + 1); end !== -1; end = text.indexOf("\"", end + 1)) {
    let slashes = 0
    while (text.charCodeAt(end - 1 - slashes) === 0x5c) slashes++
    if (slashes % 2 === 0) return end
  }
  return -1
}
