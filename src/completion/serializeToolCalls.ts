/**
 * Serializes the structured calls of an upstream, in the order in which their names arrive. Their chunks may interleave with
 * each other, with text and with reasoning. Everything after an open call waits until the call is complete or the reply ends.
 *
 * A call without arguments stays open until the end of the reply: some servers name all calls before they send any arguments,
 * and a tool must not run without its arguments. The calls behind it wait as long.
 */
import type { JsonFields } from "../domain/json.ts"
import { addSealed, isOrderedPlace } from "../domain/replyExtras.ts"
import type { Meter } from "../domain/stream/cooperative.ts"
import { ObjectScan } from "../domain/stream/ObjectScan.ts"
import { TextPieces } from "../domain/stream/text.ts"
import type { HoldingMachine } from "../domain/stream/transducer.ts"
import {
  type UpstreamCall,
  type UpstreamEvent,
  type UpstreamExtra,
  UpstreamReasoning,
  UpstreamText
} from "../domain/UpstreamEvent.ts"
import { CallBegun, CallGrown, CallOver, Ending, type ReplyPart } from "./ReplyPart.ts"

const isObjectText = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/**
 * A call in progress. The scan follows whether its arguments may be a complete JSON object; only then are they parsed, once.
 */
class OpenCall {
  /** The upstream's index of the call. */
  readonly upstreamIndex: number
  /** Fields of the call that only the upstream reads. */
  sealed: JsonFields | undefined = undefined
  readonly #pieces = new TextPieces()
  readonly #scan = new ObjectScan()
  #parsed: boolean | undefined
  readonly #meter: Meter | undefined

  constructor(upstreamIndex: number, meter: Meter | undefined) {
    this.upstreamIndex = upstreamIndex
    this.#meter = meter
  }

  /** Length of the arguments so far, in characters. */
  get length(): number {
    return this.#pieces.length
  }

  get arguments(): string {
    return this.#pieces.toString()
  }

  /** The arguments are blank so far. */
  get isBlank(): boolean {
    return this.#scan.isBlank
  }

  /** The arguments are a complete JSON object. */
  get isWhole(): boolean {
    if (!this.#scan.isClosed) return false
    if (this.#parsed === undefined) {
      if (this.#meter !== undefined) this.#meter.steps += this.#pieces.length
      this.#parsed = isObjectText(this.arguments)
    }
    return this.#parsed
  }

  push(delta: string): void {
    this.#pieces.push(delta)
    if (this.#meter !== undefined) this.#meter.steps += delta.length + 1
    this.#scan.push(delta)
  }
}

/** A structured call that waits for its name or behind another call. */
interface WaitingCall {
  readonly _tag: "WaitingCall"
  readonly upstreamIndex: number
  id: string | undefined
  name: string | undefined
  readonly arguments: TextPieces
  sealed: JsonFields | undefined
}

/** Text or reasoning without originals that waits behind an open call. */
interface WaitingText {
  readonly _tag: "WaitingText"
  readonly of: "UpstreamText" | "UpstreamReasoning"
  readonly text: TextPieces
}

const joined = ({ of, text }: WaitingText): UpstreamText | UpstreamReasoning =>
  of === "UpstreamText" ? UpstreamText(text.toString()) : UpstreamReasoning(text.toString())

class ToolCallSerializer implements HoldingMachine<UpstreamEvent, ReplyPart> {
  #ended = false
  #open: OpenCall | undefined = undefined
  /** Calls that have not started, by the upstream's index. */
  #unopened: Map<number, WaitingCall> | undefined = undefined
  /** The queue behind the open call, from `turn` on: text, content, and calls whose names are known. */
  #waiting: Array<WaitingText | WaitingCall | UpstreamText | UpstreamExtra> = []
  #turn = 0
  /** Characters of the queue and of calls without a name. */
  #waitingChars = 0
  readonly #meter: Meter | undefined

  constructor(meter: Meter | undefined) {
    this.#meter = meter
  }

  get held(): number {
    return this.#waitingChars + (this.#open?.length ?? 0)
  }

  push(event: UpstreamEvent, out: Array<ReplyPart>): void {
    if (this.#ended) return
    switch (event._tag) {
      case "UpstreamText":
      case "UpstreamReasoning":
        return this.#textual(event, out)
      case "UpstreamCall":
        return this.#structured(event, out)
      case "UpstreamExtra":
        return this.#extra(event, out)
      case "UpstreamUsage":
        out.push(event)
        return
      case "UpstreamFinish": {
        this.#ended = true
        const { reason, stopSequence } = event
        const isCut = reason === "length" || reason === "content_filter"
        const isWhole = this.#finishCalls(isCut, out)
        out.push(
          isCut
            ? Ending(reason)
            : !isWhole
            ? Ending("length")
            : stopSequence === undefined
            ? Ending("stop")
            : Ending("stop_sequence", stopSequence)
        )
      }
    }
  }

  end(out: Array<ReplyPart>): void {
    if (this.#ended) return
    out.push(Ending(this.#finishCalls(false, out) ? "stop" : "length"))
  }

  #grow(call: OpenCall, delta: string, out: Array<ReplyPart>): void {
    if (delta === "") return
    call.push(delta)
    out.push(CallGrown(delta))
  }
  #begin(call: WaitingCall, out: Array<ReplyPart>): void {
    this.#unopened?.delete(call.upstreamIndex)
    this.#open = new OpenCall(call.upstreamIndex, this.#meter)
    this.#waitingChars -= call.arguments.length
    this.#open.sealed = call.sealed
    out.push(CallBegun(call.id, call.name ?? "", call.sealed))
    this.#grow(this.#open, call.arguments.toString(), out)
  }
  #close(call: OpenCall, out: Array<ReplyPart>): void {
    this.#open = undefined
    out.push(CallOver(call.isWhole, call.arguments, call.sealed))
  }

  #structured(event: UpstreamCall, out: Array<ReplyPart>): void {
    if (this.#open !== undefined && this.#open.upstreamIndex === event.index) {
      if (event.sealed !== undefined) this.#open.sealed = addSealed(this.#open.sealed, event.sealed)
      this.#grow(this.#open, event.argumentsDelta, out)
      if (this.#turn < this.#waiting.length) this.#advance(out)
      return
    }
    let call = this.#unopened?.get(event.index)
    if (call === undefined) {
      call = {
        _tag: "WaitingCall",
        upstreamIndex: event.index,
        id: undefined,
        name: undefined,
        arguments: new TextPieces(),
        sealed: undefined
      }
      this.#unopened ??= new Map()
      this.#unopened.set(event.index, call)
    }
    call.id ??= event.id
    if (event.sealed !== undefined) call.sealed = addSealed(call.sealed, event.sealed)
    call.arguments.push(event.argumentsDelta)
    this.#waitingChars += event.argumentsDelta.length
    if (call.name !== undefined || event.name === undefined) return
    call.name = event.name
    this.#waiting.push(call)
    this.#advance(out)
  }

  /** Text and reasoning wait while a call is open. */
  #textual(event: UpstreamText | UpstreamReasoning, out: Array<ReplyPart>): void {
    if (event.text === "") return
    if (this.#open === undefined && this.#turn === this.#waiting.length) {
      out.push(event)
      return
    }
    this.#waitingChars += event.text.length
    const last = this.#waiting[this.#waiting.length - 1]
    if (event._tag === "UpstreamText" && event.original !== undefined) this.#waiting.push(event)
    else if (last?._tag === "WaitingText" && last.of === event._tag && this.#turn < this.#waiting.length) {
      last.text.push(event.text)
      return
    } else {
      const text = new TextPieces()
      text.push(event.text)
      this.#waiting.push({ _tag: "WaitingText", of: event._tag, text })
    }
    this.#advance(out)
  }

  /** Content and sealed reasoning wait as text does. */
  #extra(event: UpstreamExtra, out: Array<ReplyPart>): void {
    if (!isOrderedPlace(event.at) || (this.#open === undefined && this.#turn === this.#waiting.length)) {
      out.push(event)
      return
    }
    this.#waiting.push(event)
    this.#advance(out)
  }

  /** Emits the queue as long as the open call is complete: a complete call ends when something follows it. */
  #advance(out: Array<ReplyPart>): void {
    while (this.#turn < this.#waiting.length) {
      const next = this.#waiting[this.#turn]!
      if (this.#meter !== undefined) this.#meter.steps++
      if (this.#open !== undefined) {
        if (!this.#open.isWhole) return
        this.#close(this.#open, out)
        continue
      }
      this.#turn++
      if (next._tag === "WaitingCall") this.#begin(next, out)
      else if (next._tag === "UpstreamExtra") out.push(next)
      else {
        this.#waitingChars -= next.text.length
        out.push(next._tag === "WaitingText" ? joined(next) : next)
      }
    }
    this.#waiting = []
    this.#turn = 0
  }

  /**
   * Ends all calls and empties the queue. A call without arguments gets `{}`, unless the reply was cut. Returns false if the reply
   * was cut or has arguments that belong to no call.
   */
  #finishCalls(isCut: boolean, out: Array<ReplyPart>): boolean {
    const isWhole = !isCut && !this.#hasStray()
    this.#advance(out)
    while (this.#open !== undefined) {
      if (isWhole && this.#open.isBlank) this.#grow(this.#open, "{}", out)
      this.#close(this.#open, out)
      this.#advance(out)
    }
    return isWhole
  }
  #hasStray(): boolean {
    for (const call of this.#unopened?.values() ?? []) {
      if (call.name === undefined && call.arguments.toString().trim() !== "") return true
    }
    return false
  }
}

/** Starts the machine for one reply. Its last part is `Ending`, also if the upstream's stream just ends. */
export const serializeToolCalls = (meter?: Meter): HoldingMachine<UpstreamEvent, ReplyPart> =>
  new ToolCallSerializer(meter)
