/**
 * The one exception to fences: a reply that is nothing but one fenced block with calls of declared tools is those calls, as weak
 * models write them.
 *
 * Only a reply that begins with a fence is held, and only while what stands in it is such calls: the content goes through a sieve of
 * its own, and the first character that is text there, or the first undeclared name, gives everything back to the main one.
 */
import type { SieveEvent } from "../domain/ReplyEvent.ts"
import type { Machine } from "../stream/transducer.ts"
import { Engine } from "./engine.ts"
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

const NEWLINE = 10

const isBlank = (c: number): boolean => c === 32 || c === 9 || c === 13 || c === NEWLINE

/** A longer info string begins no such block. */
const maximalInfo = 64

export class FencedReply implements Machine<string, SieveEvent> {
  private state = BLANK
  private held = ""
  private fence = 0
  private fenceLength = 0
  private length = 0
  private readonly content: Engine
  private readonly found: Array<SieveEvent> = []
  private readonly main: Machine<string, SieveEvent>
  private readonly tools: Tools
  private readonly callId: (index: number) => string

  constructor(tools: Tools, callId: (index: number) => string) {
    this.tools = tools
    this.callId = callId
    this.main = new Engine(tools, callId)
    this.content = new Engine(tools, String)
  }

  push(text: string, out: Array<SieveEvent>): void {
    if (this.state === ORDINARY) this.main.push(text, out)
    else this.hold(text, out)
  }

  end(out: Array<SieveEvent>): void {
    if (this.state >= CONTENT && this.state !== ORDINARY) {
      const events: Array<SieveEvent> = []
      this.content.end(events)
      const isWhole = this.accept(events) && (this.state !== CLOSING || this.length >= this.fenceLength)
      if (isWhole && this.found.length > 0) {
        for (const event of this.found) {
          out.push("id" in event ? { ...event, id: this.callId(event.index) } : event)
        }
        return
      }
    }
    if (this.held !== "") this.main.push(this.held, out)
    this.main.end(out)
  }

  private hold(text: string, out: Array<SieveEvent>): void {
    let i = 0
    if (this.state === BLANK) {
      while (i < text.length && isBlank(text.charCodeAt(i))) i++
      const c = text.charCodeAt(i)
      if (i < text.length && c !== 96 && c !== 126) {
        this.state = ORDINARY
        this.main.push(text, out)
        return
      }
      if (i > 0) this.main.push(text.slice(0, i), out)
      if (i === text.length) return
      this.fence = c
      this.state = RUN
    }
    this.held += text.slice(i)
    if (this.takes(text, i)) return
    this.state = ORDINARY
    this.main.push(this.held, out)
    this.held = ""
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
      else if (c === 96 || ++this.length > maximalInfo) return false
    }
    if (this.state < CONTENT || i === text.length) return true
    const events: Array<SieveEvent> = []
    this.content.push(text.slice(i), events)
    return this.accept(events)
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
      this.length = 1
      return true
    }
    if (this.state === CLOSING && c === this.fence) {
      this.length++
      return true
    }
    if (!isBlank(c)) return false
    if (this.state === CLOSING) {
      if (this.length < this.fenceLength) return false
      this.state = BEHIND
    }
    return true
  }
}
