/**
 * The machine under the sieve: an incremental parser with bounded lookahead and backtracking.
 *
 * It scans prose (`prose.ts`) to the next trigger, a character at which a form may begin. A glance at the next word rules out most
 * triggers (`openings.ts`). Otherwise a form parses ahead while its text is held. If the form recognizes a call, it starts the call,
 * and arguments leave as they arrive. If it does not, the held text is released and scanned again from behind its first character.
 * A form may hold only as much as its bound, so at most that much is scanned twice; in practice a few characters, since a parse ends
 * at the first character that does not fit.
 */
import {
  CallArguments,
  CallCutOff,
  CallFinished,
  CallStarted,
  type SieveEvent,
  TextDelta
} from "../domain/ReplyEvent.ts"
import { TextPieces } from "../domain/stream/text.ts"
import type { Machine } from "../domain/stream/transducer.ts"
import type { FencedReply } from "./fencedReply.ts"
import type { Context, Form, Tools } from "./form.ts"
import { type Grammar, Openings } from "./openings.ts"
import { Prose, type Trigger } from "./prose.ts"
import type { Reader, Reading, Source } from "./reading.ts"

/** A started sieve. */
export interface Sieve extends Machine<string, SieveEvent> {
  /**
   * Takes text as `push` does, but returns true instead of emitting an event when exactly this text leaves and nothing else: the
   * caller, who has the text at hand, passes it on.
   */
  readonly passes: (text: string, out: Array<SieveEvent>) => boolean
  /**
   * Marks a place where something other than text, such as reasoning, stands between two pieces. Held text leaves and an open call
   * ends, as at the end of the reply. Later pieces continue the text, but not a call that began before.
   */
  readonly interrupt: (out: Array<SieveEvent>) => void
  /** Characters in memory: held text that may become a call, and the arguments of the open call. */
  readonly held: number
}

/** A form that is parsing. */
interface ActiveForm {
  readonly reading: Reading<void>
  /** Takes the text in place of the generator until its value is complete. */
  reader: Reader | undefined
  /** The longest lookahead in characters; narrowed once it is known which form it is. */
  bound: number
}

/** Text that a form has taken and that is neither text nor a call yet. */
interface Held {
  readonly form: ActiveForm
  /** The held text of earlier pieces; in the current piece it begins at `from`. */
  text: string
  from: number
  /** The most characters that may be held: the form's bound, or infinite once the form has committed to a call. */
  most: number
}

/** The engine's states. */
type State =
  /** At the beginning: the whole reply may be one fenced block with calls. */
  | { readonly _tag: "Fence"; readonly reply: FencedReply }
  /** Scanning prose for a trigger. */
  | { readonly _tag: "Prose" }
  /** At a trigger whose glance needs more text: `text`, from the trigger on, is put before the next piece. */
  | { readonly _tag: "Glance"; readonly text: string }
  /** A form parses; it has not decided yet whether this is a call. */
  | (Held & { readonly _tag: "Opening" })
  /** A form parses the arguments of a started call. */
  | {
    readonly _tag: "Call"
    readonly form: ActiveForm
    readonly index: number
    readonly id: string
    readonly name: string
    /** The arguments that were emitted. */
    readonly args: TextPieces
    /** The arguments from the current piece, not emitted yet. */
    pending: string
  }
  /** A form parses on behind a call: the end of its wrapper, or another call. */
  | (Held & { readonly _tag: "Between" })

type Call = Extract<State, { readonly _tag: "Call" }>

const inProse: State = { _tag: "Prose" }

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
  /** Where the text begins that was not emitted. */
  private textFrom = 0
  private calls = 0

  /** Without `fenced`, a reply that consists of one fenced block is text. */
  constructor(grammar: Grammar, tools: Tools, callId: (index: number) => string, fenced?: FencedReply) {
    this.tools = tools
    this.grammar = grammar
    this.prose = new Prose(grammar.lineStarts)
    this.openings = new Openings(grammar, tools)
    this.callId = callId
    this.state = fenced === undefined ? inProse : { _tag: "Fence", reply: fenced }
  }

  push(text: string, out: Array<SieveEvent>): void {
    if (text !== "" && this.passes(text, out)) out.push(TextDelta(text))
  }

  passes(text: string, out: Array<SieveEvent>): boolean {
    const { state } = this
    if (state === inProse) return this.scanPiece(text, out)
    if (state._tag === "Fence") return this.passFenced(state.reply, text, out)
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
    if (this.state === inProse) return
    // The reply has another part, so it does not consist of one fenced block.
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
    this.consume()
  }

  readonly cutOff = (): void => {
    const { state } = this
    if (state._tag === "Call") {
      this.emitArguments(state)
      this.out.push(CallCutOff(state.index, state.id, state.name, state.args.toString()))
    }
    this.consume()
  }

  readonly consume = (): void => {
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

  readonly closeFence = (): void => {
    this.prose.closeFence()
    this.consume()
  }

  /** Scans prose; returns true at the end of the piece, or false after handing over to a form. */
  private scanPiece(text: string, out: Array<SieveEvent>): boolean {
    const { prose } = this
    let at = prose.passPlain(text)
    if (at < text.length) at = prose.scan(text, at)
    while (at < text.length) {
      const seen = this.openings.glance(text, at, prose, this.isEnded)
      if (seen === "more" || seen === "parse") {
        this.run(text, at, out)
        return false
      }
      at = prose.scan(text, seen === "prose" ? prose.skip(at) : prose.skipOrEnterData(at))
    }
    return true
  }

  /** Continues with an ordinary reply that begins with a fence: scans the text that was held. */
  private unfence(held: string, out: Array<SieveEvent>): void {
    this.state = inProse
    if (held !== "" && this.scanPiece(held, out)) out.push(TextDelta(held))
  }

  private passFenced(reply: FencedReply, text: string, out: Array<SieveEvent>): boolean {
    const passed = reply.push(text)
    if (reply.isOver) this.state = inProse
    if (passed === "" || !this.scanPiece(passed, out)) return false
    if (passed === text) return true
    out.push(TextDelta(passed))
    return false
  }

  /** Handles a piece; the text before `from`, which ended at a trigger, was scanned already. */
  private run(text: string, from: number, out: Array<SieveEvent>): void {
    const { source } = this
    this.out = out
    source.text = text
    source.pos = from
    this.textFrom = 0
    if (this.state._tag === "Glance") this.state = inProse
    else if (this.state._tag === "Opening" || this.state._tag === "Between") this.state.from = 0
    for (;;) {
      if (this.state === inProse) {
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
        if (seen === "prose") source.pos = this.prose.skip(at)
        else if (seen === "data") source.pos = this.prose.skipOrEnterData(at)
        else this.open(at, trigger)
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

  private open(at: number, trigger: Trigger): void {
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

  /** Continues the form's parse. Returns false when it waits for more text. */
  private advance(): boolean {
    const { source, state } = this
    if (state._tag !== "Opening" && state._tag !== "Call" && state._tag !== "Between") return true
    const { form } = state
    this.limit()
    if (source.pos === source.stop && !source.ended) return this.awaitText()
    for (;;) {
      if (form.reader === undefined) {
        const step = form.reading.next()
        if (step.done === true) {
          if (this.state._tag === "Call") this.cutOff()
          this.release()
          return true
        }
        form.reader = step.value
        if (step.value === undefined && source.pos === source.stop && !source.ended) return this.awaitText()
      } else if (form.reader.read(source)) {
        form.reader = undefined
      } else {
        return this.awaitText()
      }
    }
  }

  /** Sets how far the form may read: no further than it may hold. */
  private limit(): void {
    const { source, state } = this
    const end = source.text.length
    const isHeld = state._tag === "Opening" || state._tag === "Between"
    source.stop = isHeld ? Math.min(end, Math.max(state.from + state.most - state.text.length, source.pos)) : end
    source.ended = this.isEnded && source.stop === end
  }

  /** The form needs more text. At its bound it does not get more: the held text is released. */
  private awaitText(): boolean {
    if (this.source.stop === this.source.text.length) return false
    this.release()
    return true
  }

  /** Ends the parse: the held text is scanned as prose, from behind its first character. */
  private release(): void {
    const { source, state } = this
    if (state._tag !== "Opening" && state._tag !== "Between") return
    this.state = inProse
    source.pos = state.from
    if (state.text !== "") {
      source.text = state.text + source.text
      source.pos = 0
      this.textFrom = 0
    }
    if (state._tag === "Opening") source.pos = this.prose.skipOrEnterData(source.pos)
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

  /** Called once only this form is in question: its bound replaces that of the trigger. */
  private readonly narrow = (form: Form): void => {
    const { state } = this
    if (state._tag !== "Opening") return
    state.form.bound = form.bound
    state.most = form.bound
    this.limit()
  }
}
