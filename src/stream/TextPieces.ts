/**
 * Text that grows by pieces and is read seldom. Small pieces are joined many at a time, so that a text of single characters
 * costs no more memory than its length, and no more time than twice.
 */

const mostPieces = 512

export class TextPieces {
  /** UTF-16 units so far. */
  length = 0
  private pieces: Array<string> = []
  private joined: Array<string> = []

  push(piece: string): void {
    if (piece === "") return
    this.length += piece.length
    this.pieces.push(piece)
    if (this.pieces.length < mostPieces) return
    this.joined.push(this.pieces.join(""))
    this.pieces = []
  }

  clear(): void {
    this.length = 0
    this.pieces = []
    this.joined = []
  }

  /** The whole text; costs its length where something was added since it was asked for. */
  toString(): string {
    if (this.pieces.length === 0 && this.joined.length === 1) return this.joined[0]!
    const text = this.joined.join("") + this.pieces.join("")
    this.joined = text === "" ? [] : [text]
    this.pieces = []
    return text
  }
}
