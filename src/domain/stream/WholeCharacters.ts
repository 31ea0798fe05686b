/**
 * Text in pieces none of which ends within a character: an upstream may cut a surrogate pair, and half of one cannot be written
 * as UTF-8.
 */

/** True for a piece that ends with the first half of a pair. */
export const endsWithin = (piece: string): boolean => (piece.charCodeAt(piece.length - 1) & 0xfc00) === 0xd800

/** The pieces of one text. What is held is at most the first half of a pair, until the next piece or the end. */
export class WholeCharacters {
  private half = ""

  /** Takes a piece and gives what of it, and of what was held, may leave; nothing where that is no whole character. */
  take(piece: string): string {
    const isCut = endsWithin(piece)
    if (!isCut && this.half === "") return piece
    if (piece === "") return ""
    const text = this.half + piece
    this.half = isCut ? text.slice(-1) : ""
    return isCut ? text.slice(0, -1) : text
  }

  /** Gives what is held: nothing follows that could complete it. */
  end(): string {
    const { half } = this
    this.half = ""
    return half
  }
}
