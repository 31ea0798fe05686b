/**
 * Text that arrives in pieces: joined cheaply, and never cut within a character.
 */

/** UTF-16 units after which pieces are joined to a block. */
const blockSize = 256

/** UTF-16 units from which a piece is a block itself: joined, it would be copied once more. A slice keeps at most four times as much of a chunk. */
const longPiece = 16 * 1024

/**
 * Text that grows by pieces and is read rarely. Small pieces are joined many at a time: a text that arrives by the character takes
 * memory of its length, and twice the time at most.
 */
export class TextPieces {
  /** UTF-16 units so far. */
  length = 0
  /** Allocated for the first block: most texts are short, and each reply has several. */
  private blocks: Array<string> | undefined = undefined
  private recent = ""

  /** An upper bound of the strings in memory: the blocks, and one for each character since the last one. */
  get strings(): number {
    return (this.blocks?.length ?? 0) + Math.min(this.recent.length, blockSize)
  }

  push(piece: string): void {
    this.length += piece.length
    if (this.recent === "" && piece.length >= longPiece) {
      this.#add(piece)
    } else if (this.recent.length < blockSize) {
      this.recent += piece
    } else {
      // Unlike `+`, which keeps its operands, `join` makes one flat string of many additions.
      this.#add([this.recent, piece].join(""))
      this.recent = ""
    }
  }

  #add(block: string): void {
    if (this.blocks === undefined) this.blocks = [block]
    else this.blocks.push(block)
  }

  clear(): void {
    this.length = 0
    this.blocks = undefined
    this.recent = ""
  }

  /** The whole text; costs its length if pieces were added since the last call. */
  toString(): string {
    if (this.blocks === undefined) return this.recent
    if (this.blocks.length === 1 && this.recent === "") return this.blocks[0]!
    const text = this.blocks.join("") + this.recent
    this.blocks = [text]
    this.recent = ""
    return text
  }
}

/** True for a piece that ends with the first half of a surrogate pair. */
export const endsWithin = (piece: string): boolean => (piece.charCodeAt(piece.length - 1) & 0xfc00) === 0xd800

/** Keeps surrogate pairs whole, since half of one cannot be written as UTF-8. Holds at most the first half of a pair. */
export class WholeCharacters {
  private half = ""

  /** Takes a piece and returns the whole characters of the held half and the piece, possibly empty. */
  take(piece: string): string {
    const isCut = endsWithin(piece)
    if (!isCut && this.half === "") return piece
    if (piece === "") return ""
    const text = this.half + piece
    this.half = isCut ? text.slice(-1) : ""
    return isCut ? text.slice(0, -1) : text
  }

  /** Ends the text and returns the held half. */
  end(): string {
    const { half } = this
    this.half = ""
    return half
  }
}
