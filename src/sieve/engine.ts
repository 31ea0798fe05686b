/**
 * The machine under the sieve: it follows the text, lets forms read where one may begin, and turns what they say into events.
 *
 * What a form has read is held as text until the form says that it is a call; when it says that it is none, the reading of the text
 * goes on behind the first character of what was held. So only as much is read twice as a form's bound allows, and in practice a few
 * characters, since a form ends at the first character that does not fit it.
 */
import type { SieveEvent } from "../domain/ReplyEvent.ts"
import { CallArguments, CallCutOff, CallFinished, CallStarted, TextDelta } from "../domain/ReplyEvent.ts"
import { TextPieces } from "../domain/stream/text.ts"
import type { Machine } from "../domain/stream/transducer.ts"
import type { FencedReply } from "./fencedReply.ts"
import type { Context, Form, Tools } from "./form.ts"
import type { Grammar } from "./grammar.ts"
import { Openings } from "./openings.ts"
import { Prose } from "./prose.ts"
import type { Trigger } from "./prose.ts"
import type { Reader, Reading, Source } from "./reading.ts"

/** A started sieve. */
export interface Sieve extends Machine<string, SieveEvent> {
  /**
   * Takes text as `push` does, for one who has it at hand: true where it is text as a whole, which no event says then, and nothing
   * else comes out.
   */
  readonly passes: (text: string, out: Array<SieveEvent>) => boolean
  /**
   * Says that something other than text comes between this text and the next: what is held leaves, and a call that is open
   * is over, as at the end. What follows is read as more of the same text, except that no call of it began before.
   */
  readonly interrupt: (out: Array<SieveEvent>) => void
  /** Characters that it holds: text that may become a call, and the arguments of the call that is open. */
  readonly held: number
}

/** A form at work. */
interface FormAtWork {
  readonly reading: Reading<void>
  /** Takes the text in place of the form until it is complete. */
  reader: Reader | undefined
  /** The most characters that its decision can need; narrowed when it is known which form it is. */
  bound: number
}

/** What a form has read and is neither text nor a call yet. */
interface Held {
  readonly form: FormAtWork
  /** What came in earlier pieces; of the present piece it is what stands from `from` on. */
  text: string
  from: number
  /** The most characters that may be held: the form's bound, or no bound once it is certain that a call comes. */
  most: number
}

/** What the engine does with the text. */
type State =
  /** The reply has just begun, and may be nothing but one fenced block with calls. */
  | { readonly _tag: "Fence"; readonly reply: FencedReply }
  /** Follows it to where a form may begin. */
  | { readonly _tag: "Prose" }
  /** Waits for more: a glance does not decide what begins here, so that this stands before the next piece. */
  | { readonly _tag: "Glance"; readonly text: string }
  /** Lets a form read of which it is not known yet whether it is a call. */
  | (Held & { readonly _tag: "Opening" })
  /** Lets a form read the arguments of a call that was started. */
  | {
    readonly _tag: "Call"
    readonly form: FormAtWork
    readonly index: number
    readonly id: string
    readonly name: string
    /** The arguments that have left. */
    readonly args: TextPieces
    /** The arguments that the present piece brought. */
    pending: string
  }
  /** Lets a form read on after a call: the end of its wrapper, or another call. */
  | (Held & { readonly _tag: "Between" })

type Call = Extract<State, { readonly _tag: "Call" }>

const followsProse: State = { _tag: "Prose" }

export class Engine implements Sieve, Context {
  readonly source: Source = { text: "", pos: 0, stop: 0, ended: false }
  readonly tools: Tools

  private readonly callId: (index: number) => string
  private readonly grammar: Grammar
  private readonly prose: Prose
  private readonly openings: Openings
  private state: State
  private out: Array<SieveEvent> = []
  private isEnded = false
  /** Where the text begins that has not left. */
  private textFrom = 0
  private calls = 0

  /** Without `fenced` a reply that is nothing but one fenced block is text. */
  constructor(grammar: Grammar, tools: Tools, callId: (index: number) => string, fenced?: FencedReply) {
    this.tools = tools
    this.grammar = grammar
    this.prose = new Prose(grammar.lineStarts)
    this.openings = new Openings(grammar, tools)
    this.callId = callId
    this.state = fenced === undefined ? followsProse : { _tag: "Fence", reply: fenced }
  }

  push(text: string, out: Array<SieveEvent>): void {
    if (text !== "" && this.passes(text, out)) out.push(TextDelta(text))
  }

  passes(text: string, out: Array<SieveEvent>): boolean {
    const { state } = this
    if (state === followsProse) return this.follow(text, out)
    if (state._tag === "Fence") return this.begun(state.reply, text, out)
    this.run(state._tag === "Glance" ? state.text + text : text, 0, out)
    return false
  }

  get held(): number {
    const { state } = this
    switch (state._tag) {
      case "Prose":
        return 0
      case "Fence":
        return state.reply.length
      case "Call":
        return state.args.length + state.pending.length
      default:
        return state.text.length
    }
  }

  end(out: Array<SieveEvent>): void {
    if (this.state._tag === "Fence") {
      const held = this.state.reply.end()
      if (typeof held !== "string") {
        for (const event of held) out.push("id" in event ? { ...event, id: this.callId(event.index) } : event)
        return
      }
      this.unfence(held, out)
    }
    this.isEnded = true
    this.run(this.state._tag === "Glance" ? this.state.text : "", 0, out)
  }

  interrupt(out: Array<SieveEvent>): void {
    if (this.state === followsProse) return
    // A reply that something else is part of is not nothing but a fenced block.
    if (this.state._tag === "Fence") this.unfence(this.state.reply.giveBack(), out)
    this.isEnded = true
    this.run(this.state._tag === "Glance" ? this.state.text : "", 0, out)
    this.isEnded = false
  }

  readonly start = (name: string): void => {
    const { state } = this
    if (state._tag !== "Opening" && state._tag !== "Between") return
    this.emitText(state.from)
    const index = this.calls++
    const id = this.callId(index)
    this.state = { _tag: "Call", form: state.form, index, id, name, args: new TextPieces(), pending: "" }
    this.limit()
    this.out.push(CallStarted(index, id, name))
  }

  readonly write = (piece: string): void => {
    if (this.state._tag === "Call") this.state.pending += piece
  }

  readonly finish = (): void => {
    const { state } = this
    if (state._tag === "Call") {
      this.emitArguments(state)
      this.out.push(CallFinished(state.index, state.id, state.name, state.args.toString()))
    }
    this.settle()
  }

  readonly cutOff = (): void => {
    const { state } = this
    if (state._tag === "Call") {
      this.emitArguments(state)
      this.out.push(CallCutOff(state.index, state.id, state.name, state.args.toString()))
    }
    this.settle()
  }

  readonly settle = (): void => {
    const { state } = this
    const from = this.source.pos
    if (state._tag === "Call") {
      this.state = { _tag: "Between", form: state.form, text: "", from, most: state.form.bound }
    } else if (state._tag === "Opening" || state._tag === "Between") {
      state.text = ""
      state.from = from
      state.most = state.form.bound
    }
    this.textFrom = from
    this.limit()
  }

  readonly commit = (): void => {
    const { state } = this
    if (state._tag === "Opening" || state._tag === "Between") state.most = Number.POSITIVE_INFINITY
    this.limit()
  }

  /** Follows prose to the end of the piece, which is then true, or lets a form read where one may begin. */
  private follow(text: string, out: Array<SieveEvent>): boolean {
    const { prose } = this
    let at = prose.passPlain(text)
    if (at < text.length) at = prose.scan(text, at)
    while (at < text.length) {
      const seen = this.openings.glance(text, at, prose, this.isEnded)
      if (seen === "more" || seen === "read") {
        this.run(text, at, out)
        return false
      }
      at = prose.scan(text, seen === "none" ? prose.skip(at) : prose.pass(at))
    }
    return true
  }

  /** Reads what was held of an ordinary reply that begins with a fence. */
  private unfence(held: string, out: Array<SieveEvent>): void {
    this.state = followsProse
    if (held !== "" && this.follow(held, out)) out.push(TextDelta(held))
  }

  private begun(reply: FencedReply, text: string, out: Array<SieveEvent>): boolean {
    const passed = reply.push(text)
    if (reply.isOver) this.state = followsProse
    if (passed === "" || !this.follow(passed, out)) return false
    if (passed === text) return true
    out.push(TextDelta(passed))
    return false
  }

  /** Reads all that has come; what stands before `from` was followed already, and a trigger with which that ended. */
  private run(text: string, from: number, out: Array<SieveEvent>): void {
    const { source } = this
    this.out = out
    source.text = text
    source.pos = from
    this.textFrom = 0
    if (this.state._tag === "Glance") this.state = followsProse
    else if (this.state._tag === "Opening" || this.state._tag === "Between") this.state.from = 0
    for (;;) {
      if (this.state === followsProse) {
        const at = this.prose.scan(source.text, source.pos)
        source.pos = at
        const { trigger } = this.prose
        if (trigger === undefined) break
        const seen = this.openings.glance(source.text, at, this.prose, this.isEnded)
        if (seen === "more") {
          this.emitText(at)
          this.state = { _tag: "Glance", text: source.text.slice(at) }
          return
        }
        if (seen === "none") source.pos = this.prose.skip(at)
        else if (seen === "data") source.pos = this.prose.pass(at)
        else this.begin(at, trigger)
      } else if (!this.advance()) {
        break
      }
    }
    const { state } = this
    if (state._tag === "Prose") {
      this.emitText(source.text.length)
    } else if (state._tag === "Call") {
      this.emitArguments(state)
    } else if (state._tag === "Opening" || state._tag === "Between") {
      this.emitText(state.from)
      state.text += source.text.slice(state.from)
    }
  }

  private begin(at: number, trigger: Trigger): void {
    const bound = this.grammar.bounds[trigger]
    const reading = this.openings.read(this, trigger, this.prose, this.narrow)
    this.state = {
      _tag: "Opening",
      form: { reading, reader: undefined, bound },
      text: "",
      from: at,
      most: bound
    }
  }

  /** Lets the form read on. False when it waits for more text. */
  private advance(): boolean {
    const { source, state } = this
    if (state._tag !== "Opening" && state._tag !== "Call" && state._tag !== "Between") return true
    const { form } = state
    this.limit()
    if (source.pos === source.stop && !source.ended) return this.wait()
    for (;;) {
      if (form.reader === undefined) {
        const step = form.reading.next()
        if (step.done === true) {
          this.leave()
          return true
        }
        form.reader = step.value
        if (step.value === undefined && source.pos === source.stop && !source.ended) return this.wait()
      } else if (form.reader.read(source)) {
        form.reader = undefined
      } else {
        return this.wait()
      }
    }
  }

  /** Sets how far may be read: no more than may be held. */
  private limit(): void {
    const { source, state } = this
    const end = source.text.length
    const isHeld = state._tag === "Opening" || state._tag === "Between"
    source.stop = isHeld ? Math.min(end, Math.max(state.from + state.most - state.text.length, source.pos)) : end
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
    if (this.state._tag === "Call") this.cutOff()
    this.release()
  }

  /** Ends the reading; what is on hold goes on as text. */
  private release(): void {
    const { source, state } = this
    if (state._tag !== "Opening" && state._tag !== "Between") return
    this.state = followsProse
    source.pos = state.from
    if (state.text !== "") {
      source.text = state.text + source.text
      source.pos = 0
      this.textFrom = 0
    }
    if (state._tag === "Opening") source.pos = this.prose.pass(source.pos)
    else this.prose.afterCall()
  }

  private emitText(to: number): void {
    const { text } = this.source
    if (to > this.textFrom) {
      this.out.push(TextDelta(this.textFrom === 0 && to === text.length ? text : text.slice(this.textFrom, to)))
    }
    this.textFrom = to
  }

  private emitArguments(call: Call): void {
    const { pending } = call
    if (pending === "") return
    this.out.push(CallArguments(call.index, pending))
    call.args.push(pending)
    call.pending = ""
  }

  /** From here on only this form is in question. */
  private readonly narrow = (form: Form): void => {
    const { state } = this
    if (state._tag !== "Opening") return
    state.form.bound = form.bound
    state.most = form.bound
    this.limit()
  }
}
