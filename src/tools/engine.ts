/**
 * The machine under the sieve: it follows the text, lets forms read where one may begin, and turns what they say into events.
 *
 * What a form has read is held as text until the form says that it is a call; when it says that it is none, the reading of the text
 * goes on behind the first character of what was held. So only as much is read twice as a form's bound allows, and in practice a few
 * characters, since a form ends at the first character that does not fit it.
 */
import type { SieveEvent } from "../domain/ReplyEvent.ts"
import { CallArguments, CallCutOff, CallFinished, CallStarted, TextDelta } from "../domain/ReplyEvent.ts"
import type { Machine } from "../stream/transducer.ts"
import type { Context, Form, Tools } from "./form.ts"
import { bounds, lineLetters, Openings } from "./openings.ts"
import { Prose } from "./prose.ts"
import type { Trigger } from "./prose.ts"
import type { Reader, Reading, Source } from "./reading.ts"

/** A call that was started. */
interface OpenCall {
  readonly index: number
  readonly id: string
  readonly name: string
}

export class Engine implements Machine<string, SieveEvent>, Context {
  readonly source: Source = { text: "", pos: 0, stop: 0, ended: false }
  readonly tools: Tools

  private readonly callId: (index: number) => string
  private readonly prose = new Prose(lineLetters)
  private readonly openings: Openings
  private out: Array<SieveEvent> = []
  private isEnded = false
  /** Where the text begins that has not left. */
  private textFrom = 0

  /** The end of a piece, from a trigger on, that a glance does not decide yet; it is put before the next piece. */
  private deferred = ""
  private reading: Reading<void> | undefined
  private reader: Reader | undefined
  /** No call has been started since the form began. */
  private isUndecided = false
  private isHolding = false
  /** What is on hold may be of any length. */
  private isCommitted = false
  /** What is on hold from earlier pieces; of the present piece it is what stands from `holdFrom` on. */
  private hold = ""
  private holdFrom = 0
  private bound = 0

  private calls = 0
  private call: OpenCall | undefined
  private args = ""
  private pendingArgs = ""

  constructor(tools: Tools, callId: (index: number) => string) {
    this.tools = tools
    this.openings = new Openings(tools)
    this.callId = callId
  }

  push(text: string, out: Array<SieveEvent>): void {
    if (text === "") return
    if (this.reading === undefined && this.deferred === "" && this.prose.passPlain(text)) {
      out.push(TextDelta(text))
      return
    }
    this.out = out
    this.source.text = this.deferred + text
    this.run()
  }

  end(out: Array<SieveEvent>): void {
    this.out = out
    this.isEnded = true
    this.source.text = this.deferred
    this.run()
  }

  readonly start = (name: string): void => {
    this.emitText(this.holdFrom)
    this.isHolding = false
    this.isUndecided = false
    this.isCommitted = false
    this.hold = ""
    this.limit()
    const index = this.calls++
    this.call = { index, id: this.callId(index), name }
    this.args = ""
    this.out.push(CallStarted(index, this.call.id, name))
  }

  readonly write = (piece: string): void => {
    this.pendingArgs += piece
  }

  readonly finish = (): void => {
    this.emitArguments()
    const { call } = this
    if (call !== undefined) this.out.push(CallFinished(call.index, call.id, call.name, this.args))
    this.call = undefined
    this.settle()
  }

  readonly cutOff = (): void => {
    this.emitArguments()
    const { call } = this
    if (call !== undefined) this.out.push(CallCutOff(call.index, call.id, call.name, this.args))
    this.call = undefined
    this.settle()
  }

  readonly settle = (): void => {
    this.holdFrom = this.source.pos
    this.textFrom = this.source.pos
    this.hold = ""
    this.isHolding = true
    this.isCommitted = false
    this.limit()
  }

  readonly commit = (): void => {
    this.isHolding = true
    this.isCommitted = true
    this.limit()
  }

  /** Reads all that has come. */
  private run(): void {
    this.deferred = ""
    this.source.pos = 0
    this.textFrom = 0
    this.holdFrom = 0
    for (;;) {
      if (this.reading !== undefined) {
        if (!this.advance(this.reading)) break
      } else {
        const at = this.prose.scan(this.source.text, this.source.pos)
        this.source.pos = at
        const { trigger } = this.prose
        if (trigger === undefined) break
        const seen = this.openings.glance(this.source.text, at, this.prose, this.isEnded)
        if (seen === "more") {
          this.emitText(at)
          this.deferred = this.source.text.slice(at)
          return
        }
        if (seen === "none") this.source.pos = this.prose.skip(at)
        else this.begin(at, trigger)
      }
    }
    this.emitArguments()
    if (this.reading === undefined) {
      this.emitText(this.source.text.length)
    } else if (this.isHolding) {
      this.emitText(this.holdFrom)
      this.hold += this.source.text.slice(this.holdFrom)
    }
  }

  private begin(at: number, trigger: Trigger): void {
    this.isUndecided = true
    this.isHolding = true
    this.isCommitted = false
    this.hold = ""
    this.holdFrom = at
    this.bound = bounds[trigger]
    this.reading = this.openings.read(this, trigger, this.prose, this.narrow)
  }

  /** Lets the form read on. False when it waits for more text. */
  private advance(reading: Reading<void>): boolean {
    const { source } = this
    this.limit()
    if (source.pos === source.stop && !source.ended) return this.wait()
    for (;;) {
      if (this.reader === undefined) {
        const step = reading.next()
        if (step.done === true) {
          this.leave()
          return true
        }
        this.reader = step.value
        if (step.value === undefined && source.pos === source.stop && !source.ended) return this.wait()
      } else if (this.reader.read(source)) {
        this.reader = undefined
      } else {
        return this.wait()
      }
    }
  }

  /** Sets how far may be read: while it is not decided, no further than the bound. */
  private limit(): void {
    const { source } = this
    const end = source.text.length
    const bound = this.isHolding && !this.isCommitted ? this.holdFrom + this.bound - this.hold.length : end
    source.stop = Math.min(end, Math.max(bound, source.pos))
    source.ended = this.isEnded && source.stop === end
  }

  /** The form needs more text than is there. Where there is more, it may not have it, and what is on hold is text. */
  private wait(): boolean {
    if (this.source.stop === this.source.text.length) return false
    this.release()
    return true
  }

  /** The form has read what it can. */
  private leave(): void {
    if (this.call !== undefined) this.cutOff()
    this.release()
  }

  /** Ends the reading; what is on hold goes on as text. */
  private release(): void {
    const { source } = this
    this.reading = undefined
    this.reader = undefined
    this.isHolding = false
    if (this.hold !== "") {
      source.text = this.hold + source.text
      this.hold = ""
      this.textFrom = 0
      this.holdFrom = 0
    }
    source.pos = this.holdFrom
    if (this.isUndecided) source.pos = this.prose.pass(source.pos)
    else this.prose.afterCall()
  }

  private emitText(to: number): void {
    const { text } = this.source
    if (to > this.textFrom) {
      this.out.push(TextDelta(this.textFrom === 0 && to === text.length ? text : text.slice(this.textFrom, to)))
    }
    this.textFrom = to
  }

  private emitArguments(): void {
    const { call, pendingArgs } = this
    if (pendingArgs === "" || call === undefined) return
    this.out.push(CallArguments(call.index, pendingArgs))
    this.args += pendingArgs
    this.pendingArgs = ""
  }

  /** From here on only this form is in question. */
  private readonly narrow = (form: Form): void => {
    this.bound = form.bound
    this.limit()
  }
}
