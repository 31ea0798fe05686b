/**
 * The one exception to the rule that fenced code contains no calls: weak models fence their whole reply. A reply that consists of one
 * fenced block with calls of declared tools is those calls.
 *
 * Only a reply that begins with a fence is held. Its content goes through an engine of its own; the first text there, or the first
 * undeclared name, makes it an ordinary reply, and the held text is returned. So does an info string that begins a form, unless the block
 * begins with a tag: then its calls have a form of their own.
 */
import type { SieveEvent } from "../domain/ReplyEvent.ts"
import { BACKTICK, isBlank, NEWLINE, TILDE } from "../domain/stream/characters.ts"
import type { Machine } from "../domain/stream/transducer.ts"
import { isLess } from "./fold.ts"
import type { Tools } from "./form.ts"

// The states: blanks before the block, the fence's run of characters, its info string, blanks behind that of a form, the content, the
// closing run, behind the block; and an ordinary reply.
const BLANK = 0
const RUN = 1
const INFO = 2
const FORM = 3
const CONTENT = 4
const CLOSING = 5
const BEHIND = 6
const ORDINARY = 7

/** The longest info string of such a block, in characters. */
const maximalInfo = 64

export class FencedReply {
  private state = BLANK
  private held = ""
  private fence = 0
  private fenceLength = 0
  private info = ""
  /** Length of the closing run. */
  private closing = 0
  private content: Machine<string, SieveEvent> | undefined
  private readonly found: Array<SieveEvent> = []
  private readonly tools: Tools
  private readonly infos: ReadonlySet<string>
  private readonly makeContent: () => Machine<string, SieveEvent>

  /** `infos` are the info strings that begin forms. `makeContent` starts the machine that looks for calls in the block. */
  constructor(tools: Tools, infos: ReadonlySet<string>, makeContent: () => Machine<string, SieveEvent>) {
    this.tools = tools
    this.infos = infos
    this.makeContent = makeContent
  }

  /** Held characters. */
  get length(): number {
    return this.held.length
  }

  /** The reply is an ordinary one, and the held text was returned. */
  get isOver(): boolean {
    return this.state === ORDINARY
  }

  /** Takes a piece and returns the text that is not held, or no longer: only blanks until `isOver`. */
  push(text: string): string {
    let i = 0
    if (this.state === BLANK) {
      while (i < text.length && isBlank(text.charCodeAt(i))) i++
      const c = text.charCodeAt(i)
      if (i === text.length) return text
      if (c !== BACKTICK && c !== TILDE) {
        this.state = ORDINARY
        return text
      }
      this.fence = c
      this.state = RUN
    }
    this.held += text.slice(i)
    if (this.takes(text, i)) return text.slice(0, i)
    this.state = ORDINARY
    return text.slice(0, i) + this.held
  }

  /** Ends the reply; returns the events of its calls, with indexes as ids, or the held text. */
  end(): ReadonlyArray<SieveEvent> | string {
    if (this.content === undefined || this.state === ORDINARY) return this.held
    const events: Array<SieveEvent> = []
    this.content.end(events)
    const isWhole = this.accept(events) && (this.state !== CLOSING || this.closing >= this.fenceLength)
    return isWhole && this.found.length > 0 ? this.found : this.held
  }

  /** Takes text from `from`; returns false when the reply is an ordinary one. */
  private takes(text: string, from: number): boolean {
    let i = from
    for (; this.state === RUN && i < text.length; i++) {
      if (text.charCodeAt(i) === this.fence) {
        this.fenceLength++
      } else {
        if (this.fenceLength < 3) return false
        this.state = INFO
        break
      }
    }
    for (; this.state === INFO && i < text.length; i++) {
      const c = text.charCodeAt(i)
      if (c === NEWLINE) {
        this.state = this.infos.has(this.info.trim()) ? FORM : CONTENT
      } else {
        this.info += text.charAt(i)
        if (c === BACKTICK || this.info.length > maximalInfo) return false
      }
    }
    while (this.state === FORM && i < text.length && isBlank(text.charCodeAt(i))) i++
    if (this.state < FORM || i === text.length) return true
    if (this.state === FORM && !isLess(text.charCodeAt(i))) return false
    if (this.state === FORM) this.state = CONTENT
    this.content ??= this.makeContent()
    const events: Array<SieveEvent> = []
    this.content.push(text.slice(i), events)
    return this.accept(events)
  }

  /** Makes it an ordinary reply and returns the held text. */
  giveBack(): string {
    this.state = ORDINARY
    return this.held
  }

  private accept(events: ReadonlyArray<SieveEvent>): boolean {
    for (const event of events) {
      if (event._tag === "TextDelta") {
        for (let i = 0; i < event.text.length; i++) if (!this.acceptText(event.text.charCodeAt(i))) return false
      } else if (event._tag === "CallCutOff" || this.state !== CONTENT) {
        return false
      } else {
        if (event._tag === "CallStarted" && !this.tools.has(event.name)) return false
        this.found.push(event)
      }
    }
    return true
  }

  /** Accepts blanks and the closing fence, the only text around the calls. */
  private acceptText(c: number): boolean {
    if (this.state === CONTENT && c === this.fence) {
      this.state = CLOSING
      this.closing = 1
      return true
    }
    if (this.state === CLOSING && c === this.fence) {
      this.closing++
      return true
    }
    if (!isBlank(c)) return false
    if (this.state === CLOSING) {
      if (this.closing < this.fenceLength) return false
      this.state = BEHIND
    }
    return true
  }
}
