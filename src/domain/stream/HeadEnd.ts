/**
 * Finds the blank line behind a head (`\r\n\r\n`) in bytes that arrive in pieces. Looks at each byte once and keeps none.
 */
const CR = 0x0d
const LF = 0x0a

const blankLine = [CR, LF, CR, LF]

export class HeadEnd {
  /** Bytes of the blank line that the last bytes are. */
  private matched = 0

  /** The index behind the first blank line, with which the search begins anew; -1 if it has not arrived yet. */
  find(bytes: Uint8Array): number {
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at]
      if (byte === blankLine[this.matched]) this.matched++
      else this.matched = byte === CR ? 1 : 0
      if (this.matched < blankLine.length) continue
      this.matched = 0
      return at + 1
    }
    return -1
  }
}
