/**
 * The pieces of text that a machine holds. Text that leaves the machine in the order in which it came has its pieces again, with their
 * originals.
 */
import { clear } from "../domain/stream/transducer.ts"
import { UpstreamText } from "../domain/UpstreamEvent.ts"

/** Pieces that are held at most; text behind them leaves as it comes. */
const mostPieces = 10_000

export class HeldPieces {
  readonly #pieces: Array<UpstreamText> = []
  /** The index of the first piece of which text is held, and how many characters of it have left. */
  #first = 0
  #passed = 0

  /** Takes a piece with an original. Others need not be found again. */
  hold(piece: UpstreamText): void {
    if (piece.original !== undefined && this.#pieces.length < mostPieces) this.#pieces.push(piece)
  }

  /** Passes text on by pieces: whole ones as they came, and parts of others. */
  release(text: string, each: (piece: UpstreamText) => void): void {
    let rest = text
    while (rest !== "" && this.#first < this.#pieces.length) {
      const piece = this.#pieces[this.#first]!
      const part = rest.slice(0, piece.text.length - this.#passed)
      each(part.length === piece.text.length ? piece : UpstreamText(part))
      this.#passed = (this.#passed + part.length) % piece.text.length
      if (this.#passed === 0) this.#first++
      rest = rest.slice(part.length)
    }
    if (rest !== "") each(UpstreamText(rest))
  }

  /** The machine holds nothing, or has taken some of the text away. */
  forget(): void {
    clear(this.#pieces)
    this.#first = 0
    this.#passed = 0
  }
}
