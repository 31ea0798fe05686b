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
import { forms } from "./forms/table.ts"
import { Prose } from "./prose.ts"
import type { Trigger } from "./prose.ts"
import { readTagHead } from "./readers/tagHead.ts"
import type { Reader, Reading, Source } from "./reading.ts"
import { isBlank, peek, skipBlanks, takeLiteral, takeUntil } from "./reading.ts"

/** A call that was started. */
interface OpenCall {
  readonly index: number
  readonly id: string
  readonly name: string
}

const isNameCharacter = (c: number): boolean =>
  (c >= 97 && c <= 122) || (c >= 65 && c <= 90) || (c >= 48 && c <= 57) || c === 95

const isWordEnd = (c: number): boolean =>
  !((c >= 97 && c <= 122) || (c >= 65 && c <= 90) || (c >= 48 && c <= 57) || c === 95 || c === 45 || c === 46)

/** Elements that have no closing tag. */
const voidElements = new Set("area base br col embed hr img input link meta p li param source track wbr".split(" "))

/** A list may begin with such a word, and then it is data. */
const mayBeData = /^(?:\d|true|false|null|True|False|None)/

/** A longer word is left to a reading. */
const longestGlance = 16

/** More open elements are not kept account of. */
const maximalElements = 64

const lineLetters = new Set(
  forms.flatMap(({ opening }) => opening.at === "line" ? [opening.word.charCodeAt(0)] : [])
)

const at = (trigger: Trigger): ReadonlyArray<Form> => forms.filter((form) => form.opening.at === trigger)

const formsAt: { readonly [K in Trigger]: ReadonlyArray<Form> } = {
  tag: at("tag"),
  brace: at("brace"),
  bracket: at("bracket"),
  line: at("line")
}

const boundOf = (trigger: Trigger): number => Math.max(0, ...formsAt[trigger].map((form) => form.bound))

/** The bound while it is not decided which form it can be. */
const bounds: { readonly [K in Trigger]: number } = {
  tag: boundOf("tag"),
  brace: boundOf("brace"),
  bracket: boundOf("bracket"),
  line: boundOf("line")
}

export class Engine implements Machine<string, SieveEvent>, Context {
  readonly source: Source = { text: "", pos: 0, stop: 0, ended: false }
  readonly tools: Tools

  private readonly callId: (index: number) => string
  private readonly prose = new Prose(lineLetters)
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

  private readonly elements: Array<string> = []
  private calls = 0
  private call: OpenCall | undefined
  private args = ""
  private pendingArgs = ""

  constructor(tools: Tools, callId: (index: number) => string) {
    this.tools = tools
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
        const seen = this.glance(at, trigger)
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

  /**
   * What a plain word says at a trigger, without a reading: `none` where it shows that no form begins there, `more` where the piece
   * ends before it does, `read` where a form must. The word is a tag's name, the one after `[`, or a key; most of what HTML, Markdown
   * and code have at these characters is decided so.
   */
  private glance(at: number, trigger: Trigger): "none" | "more" | "read" {
    const { text } = this.source
    let start = at + 1
    while (trigger === "tag" && text.charCodeAt(start) === 32) start++
    let i = start
    while (i < text.length && isNameCharacter(text.charCodeAt(i))) i++
    if (i === text.length) return this.isEnded || i - at > longestGlance ? "read" : "more"
    const next = text.charCodeAt(i)
    if (i === start) return trigger === "tag" && next === 47 && this.elements.length === 0 ? "none" : "read"
    if (trigger === "brace") return next === 58 || next === 36 || next === 45 || isBlank(next) ? "read" : "none"
    if (trigger === "bracket") {
      const word = text.slice(start, i)
      return isWordEnd(next) && !mayBeData.test(word) && this.claimBracket(word, next) === undefined ? "none" : "read"
    }
    if (trigger === "line" || !(next === 62 || next === 32 || next === 47)) return "read"
    const written = text.slice(start, i)
    const name = written.toLowerCase()
    if (name.startsWith("dsml") || this.claimTag(name, written) !== undefined) return "read"
    this.passElement(written, false, next)
    return "none"
  }

  private begin(at: number, trigger: Trigger): void {
    this.isUndecided = true
    this.isHolding = true
    this.isCommitted = false
    this.hold = ""
    this.holdFrom = at
    this.bound = bounds[trigger]
    this.reading = this.open(trigger)
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

  /** Reads what stands at a trigger as the form that it opens, if there is one. */
  private *open(trigger: Trigger): Reading<void> {
    const { source } = this
    if (trigger === "brace") {
      for (const form of formsAt.brace) yield* form.read(this, undefined, "")
    } else if (trigger === "line") {
      const letter = yield* peek(source)
      const form = formsAt.line.find(({ opening }) => opening.at === "line" && opening.word.charCodeAt(0) === letter)
      if (form?.opening.at !== "line" || !(yield* takeLiteral(source, form.opening.word))) return
      this.narrow(form)
      yield* form.read(this, undefined, "")
    } else if (trigger === "bracket") {
      source.pos++
      yield* skipBlanks(source)
      const word = yield* takeUntil(source, isWordEnd)
      const next = yield* peek(source)
      const form = this.claimBracket(word, next)
      if (form === undefined) return
      this.narrow(form)
      yield* form.read(this, undefined, word)
    } else {
      source.pos++
      let form: Form | undefined
      const head = yield* readTagHead(source, (name, written, isClosing) => {
        form = isClosing ? undefined : this.claimTag(name, written)
        if (form === undefined) this.passElement(written, isClosing, source.text.charCodeAt(source.pos))
        else this.narrow(form)
        return form !== undefined
      })
      if (head?.isComplete === true && form !== undefined) yield* form.read(this, head, "")
    }
  }

  /** From here on only this form is in question. */
  private narrow(form: Form): void {
    this.bound = form.bound
    this.limit()
  }

  private claimTag(name: string, written: string): Form | undefined {
    return formsAt.tag.find(({ opening }) =>
      opening.at === "tag" && opening.claims(name, written, this.tools) &&
      (opening.isPlain !== true || this.elements.length === 0)
    )
  }

  private claimBracket(word: string, next: number): Form | undefined {
    return formsAt.bracket.find(({ opening }) => opening.at === "bracket" && opening.claims(word, next, this.tools))
  }

  /** Keeps account of the elements of an XML answer: those whose tags begin a line. `next` is what follows the name. */
  private passElement(name: string, isClosing: boolean, next: number): void {
    if (isClosing) {
      const at = this.elements.lastIndexOf(name)
      if (at >= 0) this.elements.length = at
    } else if (
      this.prose.isLineStart && this.elements.length < maximalElements && !voidElements.has(name) && next !== 47
    ) {
      this.elements.push(name)
    }
  }
}
