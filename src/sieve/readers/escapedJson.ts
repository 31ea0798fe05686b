/**
 * Reads JSON whose strings may stand between escape tokens instead of quotation marks. Between the tokens nothing is escaped.
 */
import type { Reader, Source } from "../reading.ts"
import { JsonReader } from "./json.ts"
import { escapeText } from "./jsonTokens.ts"

const token = "<escape>"

export class EscapedValueReader implements Reader {
  /** The beginning of a token that is not complete, and after a failure the text that turned out not to be one. */
  held = ""

  private readonly json: JsonReader
  /** Between escape tokens. */
  private isEscaped = false

  /** `sink` gets the normalized text of the value, of which `beginning` was read before. */
  constructor(sink: (piece: string) => void, beginning: string) {
    this.json = new JsonReader(sink)
    this.feed(beginning)
  }

  get isComplete(): boolean {
    return this.json.done
  }

  read(source: Source): boolean {
    const { json } = this
    const { stop, text } = source
    let i = source.pos
    while (i < stop && !json.done && !json.failed) {
      if (this.held === "") {
        const at = text.indexOf("<", i)
        const end = at < 0 || at > stop ? stop : at
        if (this.isEscaped) {
          this.feed(escapeText(text.slice(i, end)))
          i = end
        } else {
          i = json.feed(text, i, end)
        }
        if (i === stop || json.done || json.failed) continue
        if (this.isEscaped || !json.isInString) this.held = "<"
        else this.feed("<")
        i++
      } else if (text.charCodeAt(i) === token.charCodeAt(this.held.length)) {
        this.held += text.charAt(i++)
        if (this.held !== token) continue
        this.held = ""
        this.isEscaped = !this.isEscaped
        this.feed("\"")
      } else {
        this.feed(this.held)
        if (!json.failed) this.held = ""
      }
    }
    source.pos = i
    return json.done || json.failed || source.ended
  }

  private feed(text: string): void {
    this.json.feed(text, 0, text.length)
  }
}
