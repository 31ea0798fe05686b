/**
 * Cuts the text of a server-sent event stream after each event, and changes nothing: the pieces together are the text.
 */
import { TextPieces } from "./text.ts"
import type { Machine } from "./transducer.ts"

/** An event ends with a blank line. */
const blankLine = /\r\n\r\n|\n\r?\n|\r\r/g

/** Characters before a piece that may begin a blank line. */
const overlap = 3

/** The index behind the last blank line of a text; 0 without one. */
const lastEnd = (text: string): number => {
  let end = 0
  blankLine.lastIndex = 0
  while (blankLine.exec(text) !== null) end = blankLine.lastIndex
  return end
}

/** Holds the unfinished event; its length is `held`, which the caller bounds. Each character is searched twice at most. */
export class EventCut implements Machine<string, string> {
  private readonly pieces = new TextPieces()
  private tail = ""

  /** Characters of the unfinished event. */
  get held(): number {
    return this.pieces.length
  }

  /** Emits the finished events in one piece. */
  push(text: string, out: Array<string>): void {
    const end = lastEnd(this.tail + text) - this.tail.length
    if (end <= 0) {
      this.pieces.push(text)
      this.tail = (this.tail + text).slice(-overlap)
      return
    }
    this.pieces.push(text.slice(0, end))
    out.push(this.pieces.toString())
    this.pieces.clear()
    const rest = text.slice(end)
    if (rest !== "") this.pieces.push(rest)
    this.tail = rest.slice(-overlap)
  }

  end(out: Array<string>): void {
    if (this.pieces.length > 0) out.push(this.pieces.toString())
    this.pieces.clear()
  }
}
