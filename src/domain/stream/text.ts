/**
 * Text that comes in pieces: joined cheaply, and never cut within a character.
 */

/** UTF-16 units after which pieces are joined. */
const blockSize = 256

export class TextPieces {
  /** UTF-16 units so far. */
  length = 0
  /** Made when the first one is: most texts are short, and each reply has several. */
  private blocks: Array<string> | undefined = undefined
  private recent = ""

  /** The most strings that hold it: those that were joined, and one for each character that waits to be. */
  get strings(): number {
    return (this.blocks?.length ?? 0) + Math.min(this.recent.length, blockSize)
  }

  push(piece: string): void {
    this.length += piece.length
    if (this.recent.length < blockSize) {
      this.recent += piece
    } else {
      // Unlike `+`, which keeps its operands, this makes one string of what many additions left.
      const block = [this.recent, piece].join("")
      if (this.blocks === undefined) this.blocks = [block]
      else this.blocks.push(block)
      this.recent = ""
    }
  }

  clear(): void {
    this.length = 0
    this.blocks = undefined
    this.recent = ""
  }

  /** The whole text; costs its length where something was added since it was asked for. */
  toString(): string {
    if (this.blocks === undefined) return this.recent
    if (this.blocks.length === 1 && this.recent === "") return this.blocks[0]!
    const text = this.blocks.join("") + this.recent
    this.blocks = [text]
    this.recent = ""
    return text
  }
}

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
