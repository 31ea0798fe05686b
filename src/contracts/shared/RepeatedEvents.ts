/**
 * Reads the events of one reply by comparison, where they repeat the last one but for their piece of the text.
 *
 * A decoder parses an event, and sees that it is nothing but a piece of text. What stands before and after the piece is remembered. If
 * the next event has the same text before and after, and between them what a JSON string says without an escape, then it is the same
 * event with another piece, because equal text has equal meaning. It is not parsed. Any other event is.
 *
 * Events may differ in more that the decoder does not read, such as a number, or padding that hides the length of the piece.
 */
import type { UpstreamEvent } from "../../domain/UpstreamEvent.ts"
import { parseJson } from "./json.ts"

/** A piece of a reply, and what tells the decoder what it is a piece of. */
export interface Piece<K> {
  readonly kind: K
  readonly text: string
}

/** Characters of an event that is remembered at most. */
const longestEvent = 8_192

/** Events that are looked at for something to remember at most. Events that alternate cost no more than to parse them. */
const mostAttempts = 32

/** The content of a string that stands for a piece. Its text in JSON. */
const marked = "\\u0000"

/** True for the inside of a JSON string that has no escape, and so means itself. */
const isPlain = (text: string): boolean => {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 0x20 || code === 0x22 || code === 0x5c) return false
  }
  return true
}

/** True if the events from an index on are text and reasoning. */
export const isTextOnly = (events: ReadonlyArray<UpstreamEvent>, from: number): boolean => {
  for (let i = from; i < events.length; i++) {
    const { _tag } = events[i]!
    if (_tag !== "UpstreamText" && _tag !== "UpstreamReasoning") return false
  }
  return true
}

/** The reader of one stream's events. `pieceOf` returns the piece that is all that a parsed event says. */
export class RepeatedEvents<K> {
  readonly #pieceOf: (value: unknown) => Piece<K> | undefined
  readonly #differing: RegExp | undefined
  /** The remembered event has members that differ. */
  #differs = false
  #before = ""
  #after = ""
  #kind: K | undefined
  /** The last event was of the remembered form. */
  #repeats = false
  #attempts = 0

  /** `differing` finds the members that differ from event to event, and that the decoder does not read; its first group is their name. */
  constructor(pieceOf: (value: unknown) => Piece<K> | undefined, differing?: RegExp) {
    this.#pieceOf = pieceOf
    this.#differing = differing
  }

  /** The piece of an event that repeats the last one; `undefined` if it has to be parsed. */
  next(data: string): Piece<K> | undefined {
    if (!this.#repeats) return undefined
    const event = this.#differs ? this.#alike(data) : data
    if (!this.#fits(event)) return undefined
    const text = event.slice(this.#before.length, event.length - this.#after.length)
    return isPlain(text) ? { kind: this.#kind!, text } : undefined
  }

  /**
   * Notes the event that was parsed last. `isRepeatable`: its decoder would do the same with an event that says the same with another
   * piece, if that comes next.
   */
  parsed(data: string, value: unknown, isRepeatable: boolean): void {
    const piece = isRepeatable && data.length <= longestEvent ? this.#pieceOf(value) : undefined
    if (piece === undefined) {
      this.#repeats = false
      return
    }
    const event = this.#alike(data)
    this.#differs = event !== data
    this.#repeats = this.#isKnown(event, piece) || this.#learn(event, piece)
  }

  /** An event with zeros in the place of what differs. */
  #alike(event: string): string {
    return this.#differing === undefined ? event : event.replace(this.#differing, "\"$1\":0")
  }

  /** Slices are compared a word at a time; `startsWith` and `endsWith` take ten times as long, character by character. */
  #fits(event: string): boolean {
    const [before, after] = [this.#before, this.#after]
    return event.length >= before.length + after.length && event.slice(0, before.length) === before &&
      event.slice(event.length - after.length) === after
  }

  #isKnown(event: string, { kind, text }: Piece<K>): boolean {
    return this.#before !== "" && kind === this.#kind && this.#fits(event) &&
      event.slice(this.#before.length, event.length - this.#after.length) === text
  }

  #learn(event: string, { kind, text }: Piece<K>): boolean {
    if (this.#attempts >= mostAttempts || !isPlain(text)) return false
    this.#attempts++
    const start = event.indexOf(`"${text}"`)
    if (start === -1) return false
    const before = event.slice(0, start + 1)
    const after = event.slice(start + 1 + text.length)
    // Another string of the event may say the same as the piece.
    const found = this.#pieceOf(parseJson(before + marked + after))
    if (found?.text !== "\u0000" || found.kind !== kind) return false
    this.#before = before
    this.#after = after
    this.#kind = kind
    return true
  }
}
