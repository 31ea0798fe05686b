/**
 * Removes from a reply's text what is not text: calls that the sieve finds, reference markers, and everything from a stop
 * sequence on. Held text is released as soon as something other than text follows.
 */
import { commonWords } from "../contracts/names.ts"
import type { SieveEvent } from "../domain/ReplyEvent.ts"
import { isBoundPlace, isOrderedPlace } from "../domain/replyExtras.ts"
import { markerMachine } from "../domain/stream/referenceMarkers.ts"
import { stopMachine, type StopSequences } from "../domain/stream/stopSequences.ts"
import { TextPieces } from "../domain/stream/text.ts"
import { clear, type HoldingMachine } from "../domain/stream/transducer.ts"
import { UpstreamExtra, UpstreamReasoning, UpstreamText } from "../domain/UpstreamEvent.ts"
import type { Sieve } from "../sieve/sieve.ts"
import { HeldPieces } from "./HeldPieces.ts"
import { CallBegun, CallGrown, CallOver, Ending, type ReplyPart } from "./ReplyPart.ts"

/** Options of one reply. */
export interface FilterOptions {
  /** Makes the sieve that finds calls in the text; `undefined` without declared tools. */
  readonly sieve: (() => Sieve) | undefined
  readonly stripMarkers: boolean
  readonly stop: StopSequences | undefined
}

/** Events that wait for text at most; more of them do not wait. */
const mostWaiting = 10_000

class TextFilter implements HoldingMachine<ReplyPart, ReplyPart> {
  readonly #sieve: Sieve | undefined
  readonly #markers: ReturnType<typeof markerMachine> | undefined
  readonly #stop: ReturnType<typeof stopMachine> | undefined
  #ended = false
  readonly #strings: Array<string> = []
  readonly #stopped: Array<string> = []
  readonly #sieved: Array<SieveEvent> = []
  /** Pieces that the sieve holds. */
  readonly #pieces = new HeldPieces()
  /** Logprobs of the server's text were passed on. */
  #hasLogprobs = false
  /** The text is no longer the server's, so that its logprobs do not hold. */
  #isChanged = false
  /** A call from the sieve is open. */
  #inCall = false
  /** Content beside the text that arrived during the open call. */
  #content: Array<UpstreamExtra> = []
  /** Reasoning that arrived during the open call. */
  #reasoning: TextPieces | undefined

  constructor(options: FilterOptions) {
    this.#sieve = options.sieve?.()
    this.#markers = options.stripMarkers ? markerMachine() : undefined
    this.#stop = options.stop === undefined ? undefined : stopMachine(options.stop)
  }

  /** Characters held by the sieve; what markers and stop sequences hold is negligible. */
  get held(): number {
    return (this.#sieve?.held ?? 0) + (this.#reasoning?.length ?? 0)
  }

  push(part: ReplyPart, out: Array<ReplyPart>): void {
    if (this.#ended) return
    switch (part._tag) {
      case "UpstreamText":
        if (this.#sieve?.passes(part.text, this.#sieved) === false) {
          if (!this.#inCall) this.#pieces.hold(part)
          this.#fromSieve(out)
          if (this.#content.length > 0 && !this.#holdsText) this.#release(out)
          return
        }
        return this.#toMarkers(part, out)
      case "CallBegun":
        // A structured call of the upstream ends a call in the text before it, which is cut off unless its arguments are
        // complete: calls are serialized.
        this.#sieve?.interrupt(this.#sieved)
        this.#fromSieve(out)
        if (!this.#ended) this.#flush(out)
        if (!this.#ended) out.push(part)
        return
      case "UpstreamReasoning":
        // An open call is emitted without interruption.
        if (this.#inCall) (this.#reasoning ??= new TextPieces()).push(part.text)
        else out.push(part)
        return
      case "Ending":
        this.#sieve?.end(this.#sieved)
        this.#fromSieve(out)
        if (!this.#ended) this.#flush(out)
        this.#release(out)
        if (!this.#ended) this.#finish(part, out)
        return
      case "UpstreamExtra":
        this.#extra(part, out)
        return
      default:
        out.push(part)
    }
  }

  end(): void {}

  #extra(part: UpstreamExtra, out: Array<ReplyPart>): void {
    if (isBoundPlace(part.at)) {
      // Text does not continue after another block of the content, nor over the bounds of an item.
      this.#sieve?.interrupt(this.#sieved)
      this.#fromSieve(out)
      if (!this.#ended) this.#flush(out)
      if (!this.#ended) this.#release(out)
      if (!this.#ended) out.push(part)
      return
    }
    // What the server says beside the text waits for the end of a call in it, and an event for all text that is held.
    const waits = part.at === "event" ? this.#holdsText : isOrderedPlace(part.at) && this.#inCall
    if (waits && this.#content.length < mostWaiting) {
      this.#content.push(part)
      return
    }
    const { logprobs, logprobsResult, ...rest } = part.value
    if (part.at !== "choice" || (logprobs === undefined && logprobsResult === undefined)) {
      out.push(part)
      return
    }
    this.#hasLogprobs ||= logprobs !== undefined
    if (!this.#isChanged) out.push(part)
    else if (Object.keys(rest).length > 0) out.push(UpstreamExtra(part.family, "choice", rest))
  }
  /** Text is held that may become a call. */
  get #holdsText(): boolean {
    return this.#inCall || (this.#sieve?.held ?? 0) > 0
  }

  #release(out: Array<ReplyPart>): void {
    for (const part of this.#content) out.push(part)
    clear(this.#content)
  }
  #changed(out: Array<ReplyPart>): void {
    if (this.#hasLogprobs && !this.#isChanged) out.push(UpstreamExtra(commonWords, "choice", { logprobs: null }))
    this.#isChanged = true
  }
  #toStop(part: UpstreamText, out: Array<ReplyPart>): void {
    if (this.#stop === undefined) {
      out.push(part)
      return
    }
    this.#stop.push(part.text, this.#stopped)
    for (const passed of this.#stopped) out.push(passed === part.text ? part : UpstreamText(passed))
    clear(this.#stopped)
    const found = this.#stop.found()
    if (found !== undefined) {
      this.#changed(out)
      this.#finish(Ending("stop_sequence", found), out)
    }
  }
  #unmarked(out: Array<ReplyPart>, part?: UpstreamText): void {
    for (let i = 0; i < this.#strings.length && !this.#ended; i++) {
      const passed = this.#strings[i]!
      this.#toStop(passed === part?.text ? part : UpstreamText(passed), out)
    }
    clear(this.#strings)
  }
  #toMarkers(part: UpstreamText, out: Array<ReplyPart>): void {
    if (this.#ended) return
    if (this.#markers === undefined) return this.#toStop(part, out)
    this.#markers.push(part.text, this.#strings)
    this.#unmarked(out, part)
  }
  /** Releases the text that markers and stop sequences hold. */
  #flush(out: Array<ReplyPart>): void {
    if (this.#markers !== undefined) {
      this.#markers.flush(this.#strings)
      this.#unmarked(out)
    }
    if (this.#stop !== undefined && !this.#ended) {
      this.#stop.flush(this.#stopped)
      for (const passed of this.#stopped) out.push(UpstreamText(passed))
      clear(this.#stopped)
    }
  }
  #finish(ending: ReplyPart, out: Array<ReplyPart>): void {
    this.#ended = true
    out.push(ending)
  }

  #fromSieve(out: Array<ReplyPart>): void {
    for (let i = 0; i < this.#sieved.length && !this.#ended; i++) {
      const event = this.#sieved[i]!
      switch (event._tag) {
        case "TextDelta":
          this.#pieces.release(event.text, (piece) => this.#toMarkers(piece, out))
          break
        case "CallStarted":
          this.#flush(out)
          if (this.#ended) break
          this.#inCall = true
          this.#pieces.forget()
          this.#changed(out)
          out.push(CallBegun(undefined, event.name))
          break
        case "CallArguments":
          out.push(CallGrown(event.delta))
          break
        case "CallFinished":
        case "CallCutOff":
          this.#inCall = false
          out.push(CallOver(event._tag === "CallFinished", event.arguments))
          if (this.#reasoning !== undefined) out.push(UpstreamReasoning(this.#reasoning.toString()))
          this.#reasoning = undefined
          this.#release(out)
      }
    }
    clear(this.#sieved)
    if (!this.#holdsText) this.#pieces.forget()
  }
}

/** Starts the machine for one reply. It ignores everything after `Ending`. */
export const filterText = (options: FilterOptions): HoldingMachine<ReplyPart, ReplyPart> => new TextFilter(options)
