/**
 * Puts an upstream's structured calls one after another, in the order in which their names came: their pieces may come in each
 * other's midst, and text and reasoning among them. What follows an open call waits until that call is whole.
 */
import type { UpstreamCall, UpstreamEvent, UpstreamReasoning, UpstreamText } from "../domain/UpstreamEvent.ts"
import type { Meter } from "../stream/steps.ts"
import { TextPieces } from "../stream/TextPieces.ts"
import type { Machine } from "../stream/transducer.ts"
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

/** Starts the machine for one reply. Ends with `Ending`, also where the upstream says nothing of an end. */
export const orderCalls = (meter?: Meter): Machine<UpstreamEvent, ReplyPart> => {
  let ended = false
  let open: OpenCall | undefined
  /** Calls that have not begun, by the upstream's number. */
  const unopened = new Map<number, WaitingCall>()
  /** What waits for its turn behind the open call, from `turn` on: text, and calls whose names are known. */
  let waiting: Array<WaitingText | WaitingCall> = []
  let turn = 0

  const grow = (call: OpenCall, delta: string, out: Array<ReplyPart>) => {
    if (delta === "") return
    call.push(delta)
    out.push(CallGrown(delta))
  }
  const begin = (call: WaitingCall, out: Array<ReplyPart>) => {
    unopened.delete(call.upstreamIndex)
    open = new OpenCall(call.upstreamIndex, meter)
    out.push(CallBegun(call.id, call.name ?? ""))
    grow(open, call.arguments.toString(), out)
  }
  const close = (call: OpenCall, out: Array<ReplyPart>) => {
    open = undefined
    if (call.isBlank) grow(call, "{}", out)
    out.push(CallOver(call.isWhole, call.arguments))
  }

  const structured = (event: UpstreamCall, out: Array<ReplyPart>) => {
    if (open !== undefined && open.upstreamIndex === event.index) return grow(open, event.argumentsDelta, out)
    let call = unopened.get(event.index)
    if (call === undefined) {
      call = {
        _tag: "WaitingCall",
        upstreamIndex: event.index,
        id: undefined,
        name: undefined,
        arguments: new TextPieces()
      }
      unopened.set(event.index, call)
    }
    call.id ??= event.id
    call.arguments.push(event.argumentsDelta)
    if (call.name !== undefined || event.name === undefined) return
    call.name = event.name
    waiting.push(call)
    advance(out)
  }

  const textPart = (tag: WaitingText["_tag"], text: string) => tag === "UpstreamText" ? Text(text) : Reasoning(text)

  /** Text and reasoning wait while a call is open that may go on. */
  const textual = (event: UpstreamText | UpstreamReasoning, out: Array<ReplyPart>) => {
    if (event.text === "") return
    if (open === undefined && turn === waiting.length) {
      out.push(textPart(event._tag, event.text))
      return
    }
    const last = waiting[waiting.length - 1]
    if (last?._tag === event._tag && turn < waiting.length) {
      last.text.push(event.text)
      return
    }
    const text = new TextPieces()
    text.push(event.text)
    waiting.push({ _tag: event._tag, text })
    advance(out)
  }

  /** Gives what waits its turn, as long as the open call is whole: that something follows it says that nothing more of it does. */
  const advance = (out: Array<ReplyPart>) => {
    while (turn < waiting.length) {
      const next = waiting[turn]!
      if (meter !== undefined) meter.steps++
      if (open !== undefined) {
        if (!open.isWhole && !(open.isBlank && next._tag === "WaitingCall")) return
        close(open, out)
        continue
      }
      turn++
      if (next._tag === "WaitingCall") begin(next, out)
      else out.push(textPart(next._tag, next.text.toString()))
    }
    waiting = []
    turn = 0
  }

  /** Nothing completes an open call any more: what waited behind it comes after it, whole or cut off. */
  const settle = (out: Array<ReplyPart>) => {
    advance(out)
    while (open !== undefined) {
      close(open, out)
      advance(out)
    }
  }

  return {
    push(event, out) {
      if (ended) return
      switch (event._tag) {
        case "UpstreamText":
        case "UpstreamReasoning":
          return textual(event, out)
        case "UpstreamCall":
          return structured(event, out)
        case "UpstreamUsage":
          out.push(event)
          return
        case "UpstreamFinish": {
          settle(out)
          ended = true
          const { reason, stopSequence } = event
          out.push(
            reason === "length" || reason === "content_filter"
              ? Ending(reason)
              : stopSequence === undefined
              ? Ending("stop")
              : Ending("stop_sequence", stopSequence)
          )
        }
      }
    },
    end(out) {
      if (ended) return
      settle(out)
      out.push(Ending("stop"))
    }
  }
}
