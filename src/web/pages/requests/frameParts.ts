/**
 * What each frame of a reply adds to it: text, reasoning, calls, the end, tokens. Both sides are read by their contracts.
 */
import { clientReader, type RecordedReader, serverReader, type UpstreamEvent } from "../../../contracts.ts"
import { dataOf } from "../../state/frames.ts"
import { parsed, record, string } from "../../state/json.ts"

/** A part of a reply. `call`: the name of a call that begins; `arguments`: a piece of its arguments. */
export interface Part {
  readonly kind: "text" | "reasoning" | "call" | "arguments" | "finish" | "usage" | "error"
  readonly text: string
}

/** A frame that was read: its parts, and the name of its event or form for frames without parts. */
export interface ReadFrame {
  readonly name: string
  readonly parts: ReadonlyArray<Part>
}

/** Reads the frames of one reply in their order. */
export class FrameReader {
  readonly #reader: RecordedReader | undefined
  /** The parts of the frame with which the round ends. */
  #last: Array<Part> | undefined
  #failure: string | undefined
  /** The parts of the frame that says the failure. */
  #failed: Array<Part> | undefined

  constructor(reader: RecordedReader | undefined) {
    this.#reader = reader
  }

  /** Of what a client of a style got. */
  static ofClient(style: string): FrameReader {
    return new FrameReader(clientReader(style))
  }

  /** Of what a server of a protocol sent. */
  static ofServer(protocol: string): FrameReader {
    return new FrameReader(serverReader(protocol))
  }

  read(frame: string): ReadFrame {
    const { data, event, isEvent } = dataOf(frame)
    const body = parsed(data)
    const value = record(Array.isArray(body) ? body[0] : body)
    const parts: Array<Part> = []
    const name = event || string(value["type"]) || string(value["object"]) || string(value["p"]) ||
      (body === undefined ? data.slice(0, 40) : "")
    const reader = this.#reader
    if (reader === undefined || data === "") return { name, parts }
    const error = reader.errorIn(value)
    const events: Array<UpstreamEvent> = []
    if (isEvent) reader.push({ event: event === "" ? undefined : event, data }, events)
    else if (body !== undefined && error === undefined) reader.pushWhole(data, events)
    this.#add(events, parts)
    this.#fail(parts, error)
    if (reader.hasEnded()) this.#last ??= parts
    return { name, parts }
  }

  /** Another round of the reply begins. */
  nextRound(): void {
    const events: Array<UpstreamEvent> = []
    this.#reader?.nextRound(events)
    this.#add(events, this.#last ?? [])
    this.#last = undefined
  }

  /** The reply is over: the frame with which it ended gets why. */
  end(): void {
    const events: Array<UpstreamEvent> = []
    this.#reader?.end(events)
    const parts = this.#last ?? this.#failed ?? []
    this.#add(events, parts)
    this.#fail(parts, undefined)
    if (this.#failure !== undefined) add(parts, "finish", this.#reader?.failureName ?? "")
  }

  /** Adds the error that a body is, or by which the reply has failed since. */
  #fail(parts: Array<Part>, error: string | undefined): void {
    const failure = this.#reader?.failure()
    if (error !== undefined || failure !== this.#failure) {
      add(parts, "error", error ?? failure ?? "")
      this.#failed = parts
    }
    this.#failure = failure
  }

  #add(events: ReadonlyArray<UpstreamEvent>, parts: Array<Part>): void {
    for (const event of events) {
      switch (event._tag) {
        case "UpstreamText":
          add(parts, "text", event.text)
          break
        case "UpstreamReasoning":
          add(parts, "reasoning", event.text)
          break
        case "UpstreamCall":
          add(parts, "call", event.name ?? "")
          add(parts, "arguments", event.argumentsDelta)
          break
        case "UpstreamUsage":
          addUsage(parts, event.usage.promptTokens, event.usage.completionTokens)
          break
        case "UpstreamFinish":
          add(
            parts,
            "finish",
            this.#reader!.finishNames[event.stopSequence === undefined ? event.reason : "stop_sequence"]
          )
      }
    }
  }
}

/** Adds a part, unless it is empty. */
const add = (out: Array<Part>, kind: Part["kind"], text: string): void => {
  if (text !== "") out.push({ kind, text })
}

/** Prompt and completion tokens as `12 + 34`; an unknown count is left out. */
const addUsage = (out: Array<Part>, ...counts: ReadonlyArray<number | undefined>): void => {
  const known = counts.filter((count) => count !== undefined)
  if (known.some((count) => count > 0)) add(out, "usage", known.join(" + "))
}

/** Characters of text, reasoning and calls that parts add. */
export const lengthOf = (parts: ReadonlyArray<Part>): number => {
  let length = 0
  for (const { kind, text } of parts) {
    if (kind === "text" || kind === "reasoning" || kind === "arguments" || kind === "call") length += text.length
  }
  return length
}
