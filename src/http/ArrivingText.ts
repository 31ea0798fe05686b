/**
 * Text whose bytes arrive in pieces.
 *
 * What comes in more than one is decoded piece by piece. As one it would stand in memory outside of the heap twice, as bytes
 * and as text, and such memory is what makes the collector go through all that lives.
 */
import { BYTE_ORDER_MARK } from "../domain/stream/characters.ts"

const decoder = new TextDecoder()

/** Bytes in UTF-8 as the text that they are, whatever characters they are cut in. */
export class ArrivingText {
  #first: Uint8Array | undefined
  #decoder: TextDecoder | undefined
  #text = ""

  add(bytes: Uint8Array): void {
    if (this.#first === undefined) {
      this.#first = bytes
      return
    }
    if (this.#decoder === undefined) {
      this.#decoder = new TextDecoder("utf-8", { ignoreBOM: true })
      this.#text = this.#decoder.decode(this.#first, { stream: true })
    }
    this.#text += this.#decoder.decode(bytes, { stream: true })
  }

  /** The whole text, once all is there; nothing of it is kept. */
  end(): string {
    const first = this.#first
    const all = this.#text
    this.#first = undefined
    this.#text = ""
    if (this.#decoder === undefined) return decoder.decode(first)
    const text = all + this.#decoder.decode()
    // Node's decoder would take it off wherever a piece begins with one.
    return text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text
  }
}
