/**
 * From upstream events to the canonical reply: tool calls (structured ones and those that the sieve finds in text),
 * reference markers, stop sequences, usage and the finish reason, in one machine that runs once per network chunk.
 */
import { estimateTokens } from "../domain/estimateTokens.ts"
import type { CallCutOff, CallFinished, FinishReason, ReplyEvent, SieveEvent } from "../domain/ReplyEvent.ts"
import * as Reply from "../domain/ReplyEvent.ts"
import type {
  UpstreamCall,
  UpstreamEvent,
  UpstreamFinish,
  UpstreamReasoning,
  UpstreamText
} from "../domain/UpstreamEvent.ts"
import type { PartialUsage, Usage } from "../domain/Usage.ts"
import { markerMachine } from "../stream/referenceMarkers.ts"
import type { Meter } from "../stream/steps.ts"
import type { StopSequences } from "../stream/stopSequences.ts"
import { stopMachine } from "../stream/stopSequences.ts"
import { TextPieces } from "../stream/TextPieces.ts"
import type { Machine, Transducer } from "../stream/transducer.ts"
import { OpenCall } from "./openCall.ts"

/** What one reply needs to be assembled. */
export interface AssembleOptions {
  /** The sieve over the reply's text; `undefined` when no tools are declared: every byte passes. */
  readonly sieve: Transducer<string, SieveEvent> | undefined
  /** Calls written at the end of the reasoning of a reply that has neither text nor calls. */
  readonly reasoningCalls: ((reasoning: string) => ReadonlyArray<SieveEvent>) | undefined
  readonly stripMarkers: boolean
  readonly stop: StopSequences | undefined
  /** The reply ends after its first call. */
  readonly singleCall: boolean
  /** The model has reasoning to show; else it is dropped, but counted, and searched for calls. */
  readonly showReasoning: boolean
  /** Counts a call of the reply; false where it may have no more, and is cut there. */
  readonly addCall: () => boolean
  /** Id of the call with this index. */
  readonly callId: (index: number) => string
  /** Estimates the prompt's tokens where the upstream gives no count. */
  readonly promptTokens: () => number
  /** Told the steps that ordering the calls takes. */
  readonly meter?: Meter | undefined
}

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

/** What is known of a reply's tokens while it comes: the upstream's figures, or estimates of what it has not told. */
export interface UsageSoFar {
  readonly usage: () => Usage
  /** True where a figure is not the upstream's. */
  readonly estimated: () => boolean
}

/** The machine of one reply, which can be asked for its tokens at any time. */
export interface ReplyMachine extends Machine<UpstreamEvent, ReplyEvent>, UsageSoFar {}

/** Starts the machine for one reply. After it has emitted `Finish` whatever is pushed is dropped. */
export const assembleReply = (options: AssembleOptions): ReplyMachine => {
  const sieve = options.sieve?.()
  const markers = options.stripMarkers ? markerMachine() : undefined
  const stop = options.stop === undefined ? undefined : stopMachine(options.stop)

  let usage: PartialUsage = {}
  const reasoning = new TextPieces()
  /** Text and calls, for the estimate of tokens. */
  const written = new TextPieces()
  /** Something other than blanks was written. */
  let hasInk = false
  let calls = 0
  let cutOff = false
  let finished = false

  let open: OpenCall | undefined
  /** Calls that have not begun, by the upstream's number. */
  const unopened = new Map<number, WaitingCall>()
  /** What waits for its turn behind the open call, from `turn` on: text, and calls whose names are known. */
  let waiting: Array<WaitingText | WaitingCall> = []
  let turn = 0

  const strings: Array<string> = []
  const stopped: Array<string> = []
  const sieved: Array<SieveEvent> = []

  const text = (piece: string, out: Array<ReplyEvent>) => {
    if (piece === "") return
    written.push(piece)
    hasInk ||= piece.trim() !== ""
    out.push(Reply.TextDelta(piece))
  }
  /** Sends text pieces through the stop sequences. */
  const toStop = (piece: string, out: Array<ReplyEvent>) => {
    if (stop === undefined) return text(piece, out)
    stop.push(piece, stopped)
    for (const passed of stopped) text(passed, out)
    stopped.length = 0
    if (stop.found() !== undefined) finish(endedBy("stop_sequence"), out)
  }
  const toMarkers = (piece: string, out: Array<ReplyEvent>) => {
    if (markers === undefined) return toStop(piece, out)
    markers.push(piece, strings)
    for (let i = 0; i < strings.length && !finished; i++) toStop(strings[i]!, out)
    strings.length = 0
  }
  /** Releases the text that markers and stop sequences hold: something other than text follows. */
  const flushText = (out: Array<ReplyEvent>) => {
    if (markers !== undefined) {
      markers.flush(strings)
      for (let i = 0; i < strings.length && !finished; i++) toStop(strings[i]!, out)
      strings.length = 0
    }
    if (stop !== undefined && !finished) {
      stop.flush(stopped)
      for (const passed of stopped) text(passed, out)
      stopped.length = 0
    }
  }

  /** Calls say more than how the text around them ended, and a call that was cut off says most. */
  const endedBy = (reason: "stop" | "stop_sequence"): FinishReason =>
    cutOff ? "length" : calls > 0 ? "tool_calls" : reason

  const finish = (reason: FinishReason, out: Array<ReplyEvent>, stopSequence = stop?.found()) => {
    if (finished) return
    finished = true
    out.push(
      Reply.UsageReported(wholeUsage()),
      Reply.Finish(reason, reason === "stop_sequence" ? stopSequence : undefined)
    )
  }
  const wholeUsage = (): Usage => {
    const reasoningTokens = usage.reasoningTokens ?? estimateTokens(reasoning.toString())
    const completionTokens = usage.completionTokens ?? reasoningTokens + estimateTokens(written.toString())
    return {
      promptTokens: usage.promptTokens ?? options.promptTokens(),
      completionTokens,
      reasoningTokens: Math.min(reasoningTokens, completionTokens),
      cachedTokens: usage.cachedTokens ?? 0
    }
  }

  const callEnded = (event: CallFinished | CallCutOff, out: Array<ReplyEvent>) => {
    out.push(event)
    if (event._tag === "CallCutOff") cutOff = true
    if (options.singleCall) finish(event._tag === "CallCutOff" ? "length" : "tool_calls", out)
  }

  /** The reply's index of the sieve's current call: structured calls count too. */
  let sieveIndex = 0
  const fromSieve = (events: ReadonlyArray<SieveEvent>, out: Array<ReplyEvent>) => {
    for (let i = 0; i < events.length && !finished; i++) {
      const event = events[i]!
      switch (event._tag) {
        case "TextDelta":
          toMarkers(event.text, out)
          break
        case "CallStarted":
          flushText(out)
          if (finished) return
          if (!options.addCall()) return finish("length", out)
          sieveIndex = calls++
          out.push(Reply.CallStarted(sieveIndex, options.callId(sieveIndex), event.name))
          written.push(event.name)
          break
        case "CallArguments":
          written.push(event.delta)
          out.push(Reply.CallArguments(sieveIndex, event.delta))
          break
        case "CallFinished":
        case "CallCutOff":
          callEnded({ ...event, index: sieveIndex, id: options.callId(sieveIndex) }, out)
          break
      }
    }
  }
  const toSieve = (piece: string, out: Array<ReplyEvent>) => {
    if (sieve === undefined) return toMarkers(piece, out)
    sieve.push(piece, sieved)
    fromSieve(sieved, out)
    sieved.length = 0
  }
  const endSieve = (out: Array<ReplyEvent>) => {
    if (sieve === undefined) return
    sieve.end(sieved)
    fromSieve(sieved, out)
    sieved.length = 0
  }

  const grow = (call: OpenCall, delta: string, out: Array<ReplyEvent>) => {
    if (delta === "") return
    call.push(delta)
    written.push(delta)
    out.push(Reply.CallArguments(call.index, delta))
  }
  const begin = (call: WaitingCall, out: Array<ReplyEvent>) => {
    const { name = "" } = call
    unopened.delete(call.upstreamIndex)
    flushText(out)
    if (finished) return
    if (!options.addCall()) return finish("length", out)
    const index = calls++
    open = new OpenCall(index, call.id ?? options.callId(index), name, call.upstreamIndex, options.meter)
    written.push(name)
    out.push(Reply.CallStarted(index, open.id, name))
    grow(open, call.arguments.toString(), out)
  }
  const closeCall = (out: Array<ReplyEvent>) => {
    const call = open
    if (call === undefined) return
    open = undefined
    if (call.isBlank) grow(call, "{}", out)
    callEnded(
      call.isWhole
        ? Reply.CallFinished(call.index, call.id, call.name, call.arguments)
        : Reply.CallCutOff(call.index, call.id, call.name, call.arguments),
      out
    )
  }

  const structured = (event: UpstreamCall, out: Array<ReplyEvent>) => {
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

  /** Takes text and reasoning, which wait while a call is open that may go on. */
  const textual = (event: UpstreamText | UpstreamReasoning, out: Array<ReplyEvent>) => {
    if (event.text === "") return
    if (open === undefined && turn === waiting.length) return take(event._tag, event.text, out)
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
  const advance = (out: Array<ReplyEvent>) => {
    while (turn < waiting.length && !finished) {
      const next = waiting[turn]!
      if (options.meter !== undefined) options.meter.steps++
      if (open !== undefined) {
        if (!open.isWhole && !(open.isBlank && next._tag === "WaitingCall")) return
        closeCall(out)
        continue
      }
      turn++
      if (next._tag === "WaitingCall") begin(next, out)
      else take(next._tag, next.text.toString(), out)
    }
    waiting = []
    turn = 0
  }

  const take = (tag: WaitingText["_tag"], text: string, out: Array<ReplyEvent>) => {
    if (tag === "UpstreamText") return toSieve(text, out)
    reasoning.push(text)
    if (options.showReasoning) out.push(Reply.ReasoningDelta(text))
  }

  /** Nothing completes an open call any more: what waited behind it comes after it, whole or cut off. */
  const settle = (out: Array<ReplyEvent>) => {
    advance(out)
    while (open !== undefined && !finished) {
      closeCall(out)
      advance(out)
    }
  }

  const ending = (reason: UpstreamFinish["reason"], out: Array<ReplyEvent>, stopSequence?: string) => {
    endSieve(out)
    if (finished) return
    flushText(out)
    if (finished) return
    if (reason === "content_filter") return finish("content_filter", out)
    if (calls === 0 && !hasInk && reasoning.length > 0 && options.reasoningCalls !== undefined) {
      fromSieve(options.reasoningCalls(reasoning.toString()), out)
      if (finished) return
    }
    if (reason === "length") return finish("length", out)
    finish(endedBy(stopSequence === undefined ? "stop" : "stop_sequence"), out, stopSequence)
  }

  return {
    usage: wholeUsage,
    estimated: () => usage.promptTokens === undefined || usage.completionTokens === undefined,
    push(event, out) {
      if (finished) return
      switch (event._tag) {
        case "UpstreamText":
        case "UpstreamReasoning":
          return textual(event, out)
        case "UpstreamCall":
          return structured(event, out)
        case "UpstreamUsage":
          usage = { ...usage, ...event.usage }
          return
        case "UpstreamFinish":
          settle(out)
          if (!finished) ending(event.reason, out, event.stopSequence)
      }
    },
    end(out) {
      if (finished) return
      settle(out)
      if (!finished) ending("stop", out)
    }
  }
}
