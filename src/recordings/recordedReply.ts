/**
 * A recorded reply put together: its text, reasoning, calls and end, as its contract reads them from the frames of the style or from the
 * rounds with the upstream. A reply that was cut off has what arrived. The work is linear in the recorded bytes, which `requests.max_body_bytes` bounds.
 */
import { contracts } from "../contracts/contracts.ts"
import { clientReader } from "../contracts/recordedReader.ts"
import type { FinishReason } from "../domain/ReplyEvent.ts"
import { type Cooperative, Slice } from "../domain/stream/cooperative.ts"
import { makeSseDecoder, type SseEvent } from "../domain/stream/sse.ts"
import type { UpstreamEvent } from "../domain/UpstreamEvent.ts"
import { type RecordedReplyRound, replyEvents } from "./capturePreview.ts"
import { type Frame, isEventStream } from "./frames.ts"

/** A call, and the time of its last frame: milliseconds since the request began; 0 for the upstream's side. */
interface RecordedCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
  readonly at_ms: number
}

/** A reply put together. Of several choices the text and the reasoning have the number of each choice above it. */
export interface AssembledReply {
  readonly text: string
  readonly reasoning: string
  /** In the order in which they begin; a call that was cut off is incomplete. */
  readonly calls: ReadonlyArray<RecordedCall>
  /** Why the reply ended, as its side names it; `undefined` if it did not end. */
  readonly finish: string | undefined
}

/** The texts of a reply's choices, by the number of the choice. */
class ChoiceTexts {
  readonly #texts = new Map<number, string>()

  add(choice: number, text: string): void {
    this.#texts.set(choice, (this.#texts.get(choice) ?? "") + text)
  }

  toString(): string {
    return this.#texts.size === 1 && this.#texts.has(0)
      ? this.#texts.get(0)!
      : [...this.#texts].toSorted(([a], [b]) => a - b).map(([choice, text]) => `[choice ${choice}]\n${text}`).join(
        "\n\n"
      )
  }
}

/** Collects a reply from its events. */
class Collector {
  readonly #text = new ChoiceTexts()
  readonly #reasoning = new ChoiceTexts()
  #finish: string | undefined = undefined
  #choice = 0
  readonly #calls = new Map<string, { id: string; name: string; arguments: string; at_ms: number }>()
  readonly #finishNames: Readonly<Record<FinishReason, string>>

  constructor(finishNames: Readonly<Record<FinishReason, string>>) {
    this.#finishNames = finishNames
  }

  /** Adds events that arrived at `at_ms`. */
  add(events: ReadonlyArray<UpstreamEvent>, at_ms: number): void {
    for (const event of events) {
      switch (event._tag) {
        case "UpstreamText":
          this.#text.add(this.#choice, event.text)
          break
        case "UpstreamReasoning":
          this.#reasoning.add(this.#choice, event.text)
          break
        case "UpstreamCall": {
          const place = `${this.#choice}.${event.index}`
          const call = this.#calls.get(place) ?? { id: "", name: "", arguments: "", at_ms }
          this.#calls.set(place, {
            id: call.id || (event.id ?? ""),
            name: call.name || (event.name ?? ""),
            arguments: call.arguments + event.argumentsDelta,
            at_ms
          })
          break
        }
        case "UpstreamChoice":
          this.#choice = event.index
          break
        case "UpstreamFinish":
          this.#finish = this.#finishNames[event.stopSequence === undefined ? event.reason : "stop_sequence"]
      }
    }
  }

  /** Notes the failure of a reply without another end. */
  failed(name: string | undefined): void {
    this.#finish ??= name
  }

  get reply(): AssembledReply {
    return {
      text: `${this.#text}`,
      reasoning: `${this.#reasoning}`,
      calls: [...this.#calls.values()],
      finish: this.#finish
    }
  }
}

const encoder = new TextEncoder()

/** The reply that the client received; `undefined` for styles whose replies are no conversation. */
export function* assembleReply(
  style: string,
  frames: ReadonlyArray<Frame>,
  contentType: string | undefined,
  slice = new Slice()
): Cooperative<AssembledReply | undefined> {
  const reader = clientReader(style)
  if (reader === undefined) return undefined
  const collector = new Collector(reader.finishNames)
  const sse = isEventStream(contentType) ? makeSseDecoder() : undefined
  const events: Array<SseEvent> = []
  const out: Array<UpstreamEvent> = []
  const collect = (at: number) => {
    collector.add(out, at)
    out.length = 0
  }
  for (const { at_ms, data } of frames) {
    if (slice.add(1, data.length)) yield slice.end()
    if (sse === undefined) reader.pushWhole(data, out)
    else {
      sse.push(encoder.encode(data), events)
      for (const event of events) reader.push(event, out)
      events.length = 0
    }
    collect(at_ms)
  }
  sse?.end(events)
  for (const event of events) reader.pushUnterminated(event, out)
  reader.end(out)
  collect(frames.at(-1)?.at_ms ?? 0)
  if (reader.failure() !== undefined) collector.failed(reader.failureName)
  return collector.reply
}

/** The reply as the upstream sent it over the rounds of one try; calls that a model writes as text are text. Its end has a name of chat completions. */
export function* assembleRounds(rounds: ReadonlyArray<RecordedReplyRound>): Cooperative<AssembledReply> {
  const collector = new Collector(contracts.openai.facts.finishNames)
  collector.add(yield* replyEvents(rounds), 0)
  return collector.reply
}
