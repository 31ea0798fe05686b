/**
 * From upstream events to the canonical reply: tool calls (structured ones and those that the sieve finds in text),
 * reference markers, stop sequences, usage and the finish reason, in one machine that runs once per network chunk.
 */
import { estimateTokens } from "../domain/estimateTokens.ts"
import type { CallCutOff, CallFinished, FinishReason, ReplyEvent, SieveEvent } from "../domain/ReplyEvent.ts"
import * as Reply from "../domain/ReplyEvent.ts"
import type { UpstreamCall, UpstreamEvent, UpstreamFinish } from "../domain/UpstreamEvent.ts"
import type { PartialUsage, Usage } from "../domain/Usage.ts"
import { markerMachine } from "../stream/referenceMarkers.ts"
import type { StopSequences } from "../stream/stopSequences.ts"
import { stopMachine } from "../stream/stopSequences.ts"
import type { Machine, Transducer } from "../stream/transducer.ts"

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
  /** Id of the call with this index. */
  readonly callId: (index: number) => string
  /** Estimates the prompt's tokens where the upstream gives no count. */
  readonly promptTokens: () => number
}

/** A structured call that is still growing, and what came after it meanwhile. */
interface OpenCall {
  readonly upstreamIndex: number
  readonly index: number
  readonly id: string
  readonly name: string
  arguments: string
}

const isObjectText = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

/** Starts the machine for one reply. After it has emitted `Finish` whatever is pushed is dropped. */
export const assembleReply = (options: AssembleOptions): Machine<UpstreamEvent, ReplyEvent> => {
  const sieve = options.sieve?.()
  const markers = options.stripMarkers ? markerMachine() : undefined
  const stop = options.stop === undefined ? undefined : stopMachine(options.stop)

  let usage: PartialUsage = {}
  let reasoning = ""
  let written = ""
  let calls = 0
  let cutOff = false
  let finished = false

  let open: OpenCall | undefined
  /** Id and arguments of a call whose name has not come yet. */
  let nameless: { readonly upstreamIndex: number; id: string | undefined; arguments: string } | undefined
  /** Events that came while a structured call was incomplete. */
  let waiting: Array<UpstreamEvent> = []

  const strings: Array<string> = []
  const stopped: Array<string> = []
  const sieved: Array<SieveEvent> = []

  const text = (piece: string, out: Array<ReplyEvent>) => {
    if (piece === "") return
    written += piece
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
    const reasoningTokens = usage.reasoningTokens ?? estimateTokens(reasoning)
    const completionTokens = usage.completionTokens ?? reasoningTokens + estimateTokens(written)
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
          sieveIndex = calls++
          out.push(Reply.CallStarted(sieveIndex, options.callId(sieveIndex), event.name))
          written += event.name
          break
        case "CallArguments":
          written += event.delta
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
    call.arguments += delta
    written += delta
    out.push(Reply.CallArguments(call.index, delta))
  }
  const start = (upstreamIndex: number, id: string | undefined, name: string, out: Array<ReplyEvent>) => {
    flushText(out)
    if (finished) return
    const index = calls++
    open = { upstreamIndex, index, id: id ?? options.callId(index), name, arguments: "" }
    written += name
    out.push(Reply.CallStarted(index, open.id, name))
  }
  const closeCall = (out: Array<ReplyEvent>) => {
    const call = open
    if (call === undefined) return
    open = undefined
    if (call.arguments.trim() === "") grow(call, "{}", out)
    callEnded(
      isObjectText(call.arguments)
        ? Reply.CallFinished(call.index, call.id, call.name, call.arguments)
        : Reply.CallCutOff(call.index, call.id, call.name, call.arguments),
      out
    )
  }
  const structured = (event: UpstreamCall, out: Array<ReplyEvent>) => {
    if (open !== undefined && open.upstreamIndex === event.index) return grow(open, event.argumentsDelta, out)
    if (nameless !== undefined && nameless.upstreamIndex === event.index) {
      nameless.id ??= event.id
      nameless.arguments += event.argumentsDelta
    } else {
      nameless = { upstreamIndex: event.index, id: event.id, arguments: event.argumentsDelta }
    }
    if (event.name === undefined) return
    const { arguments: held, id } = nameless
    nameless = undefined
    start(event.index, id, event.name, out)
    if (open !== undefined) grow(open, held, out)
  }

  /** True when the event belongs to the call that is open, or when none is. */
  const fits = (event: UpstreamEvent): boolean =>
    open === undefined || event._tag === "UpstreamUsage" ||
    (event._tag === "UpstreamCall" && event.index === open.upstreamIndex)

  const take = (event: UpstreamEvent, out: Array<ReplyEvent>) => {
    switch (event._tag) {
      case "UpstreamText":
        return toSieve(event.text, out)
      case "UpstreamReasoning":
        if (event.text === "") return
        reasoning += event.text
        out.push(Reply.ReasoningDelta(event.text))
        return
      case "UpstreamCall":
        return structured(event, out)
      case "UpstreamUsage":
        usage = { ...usage, ...event.usage }
        return
      case "UpstreamFinish":
        return ending(event.reason, out, event.stopSequence)
    }
  }

  /** Gives the events that waited for the open call their turn, as far as they fit now. */
  const drain = (out: Array<ReplyEvent>) => {
    while (waiting.length > 0 && !finished) {
      const queued = waiting
      waiting = []
      for (let i = 0; i < queued.length && !finished; i++) offer(queued[i]!, out)
      if (open !== undefined) return
    }
  }
  const offer = (event: UpstreamEvent, out: Array<ReplyEvent>) => {
    if (fits(event)) return take(event, out)
    // The next call, or text, is what says that the call before is whole.
    if (isObjectText(open!.arguments) || open!.arguments.trim() === "" && event._tag === "UpstreamCall") {
      closeCall(out)
      drain(out)
      if (!finished) offer(event, out)
      return
    }
    waiting.push(event)
  }

  const ending = (reason: UpstreamFinish["reason"], out: Array<ReplyEvent>, stopSequence?: string) => {
    endSieve(out)
    if (finished) return
    flushText(out)
    if (finished) return
    if (reason === "content_filter") return finish("content_filter", out)
    if (calls === 0 && written.trim() === "" && reasoning !== "" && options.reasoningCalls !== undefined) {
      fromSieve(options.reasoningCalls(reasoning), out)
      if (finished) return
    }
    if (reason === "length") return finish("length", out)
    finish(endedBy(stopSequence === undefined ? "stop" : "stop_sequence"), out, stopSequence)
  }

  return {
    push(event, out) {
      if (finished) return
      if (event._tag === "UpstreamFinish") {
        // Nothing completes an open call any more: what waited behind it comes after it, whole or cut off.
        while (open !== undefined && !finished) {
          closeCall(out)
          drain(out)
        }
        if (!finished) take(event, out)
        return
      }
      if (waiting.length > 0 && !fits(event)) {
        waiting.push(event)
        return
      }
      offer(event, out)
    },
    end(out) {
      if (finished) return
      while (open !== undefined && !finished) {
        closeCall(out)
        drain(out)
      }
      if (!finished) ending("stop", out)
    }
  }
}
