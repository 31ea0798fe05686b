/**
 * Takes out of a reply's text what is no text: calls that the sieve finds, reference markers, and all from a stop sequence on.
 * What one of these holds is released as soon as something other than text follows.
 */
import type { SieveEvent } from "../domain/ReplyEvent.ts"
import { markerMachine } from "../stream/referenceMarkers.ts"
import type { StopSequences } from "../stream/stopSequences.ts"
import { stopMachine } from "../stream/stopSequences.ts"
import type { Machine, Transducer } from "../stream/transducer.ts"
import { clear } from "../stream/transducer.ts"
import { CallBegun, CallGrown, CallOver, Ending, type ReplyPart, Text } from "./ReplyPart.ts"

/** What is to be taken out. */
export interface FilterOptions {
  /** The sieve over the reply's text; `undefined` when no tools are declared: every byte passes. */
  readonly sieve: Transducer<string, SieveEvent> | undefined
  readonly stripMarkers: boolean
  readonly stop: StopSequences | undefined
}

/** Starts the machine for one reply. After the `Ending` whatever is pushed is dropped. */
export const filterText = (options: FilterOptions): Machine<ReplyPart, ReplyPart> => {
  const sieve = options.sieve?.()
  const markers = options.stripMarkers ? markerMachine() : undefined
  const stop = options.stop === undefined ? undefined : stopMachine(options.stop)
  let ended = false

  const strings: Array<string> = []
  const stopped: Array<string> = []
  const sieved: Array<SieveEvent> = []

  const text = (piece: string, out: Array<ReplyPart>) => {
    if (piece !== "") out.push(Text(piece))
  }
  const toStop = (piece: string, out: Array<ReplyPart>) => {
    if (stop === undefined) return text(piece, out)
    stop.push(piece, stopped)
    for (const passed of stopped) text(passed, out)
    clear(stopped)
    const found = stop.found()
    if (found !== undefined) end(Ending("stop_sequence", found), out)
  }
  const unmarked = (out: Array<ReplyPart>) => {
    for (let i = 0; i < strings.length && !ended; i++) toStop(strings[i]!, out)
    clear(strings)
  }
  const toMarkers = (piece: string, out: Array<ReplyPart>) => {
    if (markers === undefined) return toStop(piece, out)
    markers.push(piece, strings)
    unmarked(out)
  }
  /** Releases the text that markers and stop sequences hold: something other than text follows. */
  const flush = (out: Array<ReplyPart>) => {
    if (markers !== undefined) {
      markers.flush(strings)
      unmarked(out)
    }
    if (stop !== undefined && !ended) {
      stop.flush(stopped)
      for (const passed of stopped) text(passed, out)
      clear(stopped)
    }
  }
  const end = (ending: ReplyPart, out: Array<ReplyPart>) => {
    ended = true
    out.push(ending)
  }

  const fromSieve = (out: Array<ReplyPart>) => {
    for (let i = 0; i < sieved.length && !ended; i++) {
      const event = sieved[i]!
      switch (event._tag) {
        case "TextDelta":
          toMarkers(event.text, out)
          break
        case "CallStarted":
          flush(out)
          if (!ended) out.push(CallBegun(undefined, event.name))
          break
        case "CallArguments":
          out.push(CallGrown(event.delta))
          break
        case "CallFinished":
        case "CallCutOff":
          out.push(CallOver(event._tag === "CallFinished", event.arguments))
      }
    }
    clear(sieved)
  }

  return {
    push(part, out) {
      if (ended) return
      switch (part._tag) {
        case "Text":
          if (sieve === undefined) return toMarkers(part.text, out)
          sieve.push(part.text, sieved)
          return fromSieve(out)
        case "CallBegun":
          flush(out)
          if (!ended) out.push(part)
          return
        case "Ending":
          sieve?.end(sieved)
          fromSieve(out)
          if (!ended) flush(out)
          if (!ended) end(part, out)
          return
        default:
          out.push(part)
      }
    },
    end() {}
  }
}
