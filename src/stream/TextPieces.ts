/**
 * Text that grows by pieces and is read seldom. Small pieces are joined many at a time, so that a text of single characters
 * costs no more memory than its length, and no more time than twice.
 */

/** UTF-16 units after which pieces are joined. */
const blockSize = 256

export class TextPieces {
  /** UTF-16 units so far. */
  length = 0
  private blocks: Array<string> = []
  private recent = ""

  push(piece: string): void {
    this.length += piece.length
    if (this.recent.length < blockSize) {
      this.recent += piece
    } else {
      // Unlike `+`, which keeps its operands, this makes one string of what many additions left.
      this.blocks.push([this.recent, piece].join(""))
      this.recent = ""
    }
  }

  clear(): void {
    this.length = 0
    this.blocks = []
    this.recent = ""
  }

  /** The whole text; costs its length where something was added since it was asked for. */
  toString(): string {
    if (this.blocks.length === 0) return this.recent
    if (this.blocks.length === 1 && this.recent === "") return this.blocks[0]!
    const text = this.blocks.join("") + this.recent
    this.blocks = [text]
    this.recent = ""
    return text
  }
}
