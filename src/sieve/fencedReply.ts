/**
 * The one exception to fences: a reply that is nothing but one fenced block with calls of declared tools is those calls, as weak
 * models write them.
 *
 * Only a reply that begins with a fence is held, and only while what stands in it is such calls: the content goes through an engine of
 * its own, and the first character that is text there, or the first undeclared name, gives everything back.
 */
import type { SieveEvent } from "../domain/ReplyEvent.ts"
import { BACKTICK, isBlank, NEWLINE, TILDE } from "../domain/stream/characters.ts"
import type { Machine } from "../domain/stream/transducer.ts"
import type { Tools } from "./form.ts"

/** Nothing but blanks so far. */
const BLANK = 0
/** In the run of fence characters. */
const RUN = 1
const INFO = 2
const CONTENT = 3
/** In the closing run. */
const CLOSING = 4
/** Behind the block. */
const BEHIND = 5
/** It is an ordinary reply. */
const ORDINARY = 6

/** A longer info string begins no such block. */
const maximalInfo = 64

export class FencedReply {
  private state = BLANK
  private held = ""
  private fence = 0
  private fenceLength = 0
  private info = 0
  /** Characters of the closing run. */
  private closing = 0
  private content: Machine<string, SieveEvent> | undefined
  private readonly found: Array<SieveEvent> = []
  private readonly tools: Tools
  private readonly makeContent: () => Machine<string, SieveEvent>

  /** `makeContent` starts the machine that looks for calls in the block. */
  constructor(tools: Tools, makeContent: () => Machine<string, SieveEvent>) {
    this.tools = tools
    this.makeContent = makeContent
  }

  /** Characters that are held. */
  get length(): number {
    return this.held.length
  }

  /** The reply is none such, and what was held has been given back. */
  get isOver(): boolean {
    return this.state === ORDINARY
  }

  /** Takes a piece and gives the text that is not held, or is not any more: until it is over, nothing but blanks. */
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

  /** Says that the reply is over: the events of its calls, with their indexes for ids, or the text that was held. */
  end(): ReadonlyArray<SieveEvent> | string {
    if (this.content === undefined || this.state === ORDINARY) return this.held
    const events: Array<SieveEvent> = []
    this.content.end(events)
    const isWhole = this.accept(events) && (this.state !== CLOSING || this.closing >= this.fenceLength)
    return isWhole && this.found.length > 0 ? this.found : this.held
  }

  /** Takes text from `from` on; false when the reply is an ordinary one. */
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
      if (c === NEWLINE) this.state = CONTENT
      else if (c === BACKTICK || ++this.info > maximalInfo) return false
    }
    if (this.state < CONTENT || i === text.length) return true
    this.content ??= this.makeContent()
    const events: Array<SieveEvent> = []
    this.content.push(text.slice(i), events)
    return this.accept(events)
  }

  /** Says that the reply is none such: the text that was held. */
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

  /** The text around the calls is blanks and the closing fence. */
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
