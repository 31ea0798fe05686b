/**
 * Puts an upstream's structured calls one after another, in the order in which their names came: their pieces may come in each
 * other's midst, and text and reasoning among them. What follows an open call waits until that call is whole, or the reply over.
 *
 * That holds for a call without arguments too: it may have none, or they are still to come, as with servers that name all
 * calls first, and only the end of the reply tells. Calls that follow one that has none come that late; the other way round
 * a tool would be run without what it was to be run with.
 */
import type { Meter } from "../domain/stream/cooperative.ts"
import { TextPieces } from "../domain/stream/text.ts"
import type { HoldingMachine } from "../domain/stream/transducer.ts"
import type { UpstreamCall, UpstreamEvent, UpstreamReasoning, UpstreamText } from "../domain/UpstreamEvent.ts"
import { OpenCall } from "./OpenCall.ts"
import { CallBegun, CallGrown, CallOver, Ending, Reasoning, type ReplyPart, Text } from "./ReplyPart.ts"

/** A structured call that waits for its name, or for its turn behind another one. */
interface WaitingCall {
  readonly _tag: "WaitingCall"
  readonly upstreamIndex: number
  id: string | undefined
  name: string | undefined
  readonly arguments: TextPieces
}

/** Text or reasoning that waits behind a call. */
interface WaitingText {
  readonly _tag: "UpstreamText" | "UpstreamReasoning"
  readonly text: TextPieces
}

const textPart = (tag: WaitingText["_tag"], text: string) => tag === "UpstreamText" ? Text(text) : Reasoning(text)

class CallOrder implements HoldingMachine<UpstreamEvent, ReplyPart> {
  private ended = false
  private open: OpenCall | undefined = undefined
  /** Calls that have not begun, by the upstream's number. */
  private unopened: Map<number, WaitingCall> | undefined = undefined
  /** What waits for its turn behind the open call, from `turn` on: text, and calls whose names are known. */
  private waiting: Array<WaitingText | WaitingCall> = []
  private turn = 0
  /** Characters of what waits, and of calls that have no name yet. */
  private waitingChars = 0
  private readonly meter: Meter | undefined

  constructor(meter: Meter | undefined) {
    this.meter = meter
  }

  get held(): number {
    return this.waitingChars + (this.open?.length ?? 0)
  }

  push(event: UpstreamEvent, out: Array<ReplyPart>): void {
    if (this.ended) return
    switch (event._tag) {
      case "UpstreamText":
      case "UpstreamReasoning":
        return this.textual(event, out)
      case "UpstreamCall":
        return this.structured(event, out)
      case "UpstreamUsage":
        out.push(event)
        return
      case "UpstreamFinish": {
        this.ended = true
        const { reason, stopSequence } = event
        const isCut = reason === "length" || reason === "content_filter"
        const isWhole = this.settle(isCut, out)
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
    if (this.ended) return
    out.push(Ending(this.settle(false, out) ? "stop" : "length"))
  }

  private grow(call: OpenCall, delta: string, out: Array<ReplyPart>): void {
    if (delta === "") return
    call.push(delta)
    out.push(CallGrown(delta))
  }
  private begin(call: WaitingCall, out: Array<ReplyPart>): void {
    this.unopened?.delete(call.upstreamIndex)
    this.open = new OpenCall(call.upstreamIndex, this.meter)
    this.waitingChars -= call.arguments.length
    out.push(CallBegun(call.id, call.name ?? ""))
    this.grow(this.open, call.arguments.toString(), out)
  }
  private close(call: OpenCall, out: Array<ReplyPart>): void {
    this.open = undefined
    out.push(CallOver(call.isWhole, call.arguments))
  }

  private structured(event: UpstreamCall, out: Array<ReplyPart>): void {
    if (this.open !== undefined && this.open.upstreamIndex === event.index) {
      this.grow(this.open, event.argumentsDelta, out)
      if (this.turn < this.waiting.length) this.advance(out)
      return
    }
    let call = this.unopened?.get(event.index)
    if (call === undefined) {
      call = {
        _tag: "WaitingCall",
        upstreamIndex: event.index,
        id: undefined,
        name: undefined,
        arguments: new TextPieces()
      }
      this.unopened ??= new Map()
      this.unopened.set(event.index, call)
    }
    call.id ??= event.id
    call.arguments.push(event.argumentsDelta)
    this.waitingChars += event.argumentsDelta.length
    if (call.name !== undefined || event.name === undefined) return
    call.name = event.name
    this.waiting.push(call)
    this.advance(out)
  }

  /** Text and reasoning wait while a call is open that may go on. */
  private textual(event: UpstreamText | UpstreamReasoning, out: Array<ReplyPart>): void {
    if (event.text === "") return
    if (this.open === undefined && this.turn === this.waiting.length) {
      out.push(textPart(event._tag, event.text))
      return
    }
    this.waitingChars += event.text.length
    const last = this.waiting[this.waiting.length - 1]
    if (last?._tag === event._tag && this.turn < this.waiting.length) {
      last.text.push(event.text)
      return
    }
    const text = new TextPieces()
    text.push(event.text)
    this.waiting.push({ _tag: event._tag, text })
    this.advance(out)
  }

  /** Gives what waits its turn, as long as the open call is whole: that something follows it says that nothing more of it does. */
  private advance(out: Array<ReplyPart>): void {
    while (this.turn < this.waiting.length) {
      const next = this.waiting[this.turn]!
      if (this.meter !== undefined) this.meter.steps++
      if (this.open !== undefined) {
        if (!this.open.isWhole) return
        this.close(this.open, out)
        continue
      }
      this.turn++
      if (next._tag === "WaitingCall") this.begin(next, out)
      else {
        this.waitingChars -= next.text.length
        out.push(textPart(next._tag, next.text.toString()))
      }
    }
    this.waiting = []
    this.turn = 0
  }

  /**
   * Nothing completes an open call any more: what waited behind it comes after it. A call without arguments has none, unless
   * the reply is cut: then they may be what it lacks. False where it is, by what is left: arguments that no call takes, since
   * theirs has no name or was over.
   */
  private settle(isCut: boolean, out: Array<ReplyPart>): boolean {
    const isWhole = !isCut && !this.hasStray()
    this.advance(out)
    while (this.open !== undefined) {
      if (isWhole && this.open.isBlank) this.grow(this.open, "{}", out)
      this.close(this.open, out)
      this.advance(out)
    }
    return isWhole
  }
  private hasStray(): boolean {
    for (const call of this.unopened?.values() ?? []) {
      if (call.name === undefined && call.arguments.toString().trim() !== "") return true
    }
    return false
  }
}

/** Starts the machine for one reply. Ends with `Ending`, also where the upstream says nothing of an end. */
export const orderCalls = (meter?: Meter): HoldingMachine<UpstreamEvent, ReplyPart> => new CallOrder(meter)
