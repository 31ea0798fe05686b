/**
 * The pieces of text that a machine holds. Text that leaves the machine in the order in which it came has its pieces again, with their
 * originals.
 */
import { clear } from "../domain/stream/transducer.ts"
import { Text, type TextPart } from "./ReplyPart.ts"

/** Pieces that are held at most; text behind them leaves as it comes. */
const mostPieces = 10_000

export class HeldPieces {
  readonly #pieces: Array<TextPart> = []
  /** The index of the first piece of which text is held, and how many characters of it have left. */
  #first = 0
  #passed = 0

  /** Takes a piece with an original. Others need not be found again. */
  hold(piece: TextPart): void {
    if (piece.original !== undefined && this.#pieces.length < mostPieces) this.#pieces.push(piece)
  }

  /** Passes text on by pieces: whole ones as they came, and parts of others. */
  release(text: string, each: (piece: TextPart) => void): void {
    let from = 0
    while (from < text.length) {
      const piece = this.#pieces[this.#first]
      const to = piece === undefined ? text.length : Math.min(text.length, from + piece.text.length - this.#passed)
      each(to - from === piece?.text.length ? piece : Text(text.slice(from, to)))
      if (piece !== undefined) this.#pass(piece, to - from)
      from = to
    }
  }

  /** The machine holds nothing, or has taken some of the text away. */
  forget(): void {
    clear(this.#pieces)
    this.#first = 0
    this.#passed = 0
  }

  #pass({ text }: TextPart, count: number): void {
    this.#passed += count
    if (this.#passed < text.length) return
    this.#first++
    this.#passed = 0
  }
}
