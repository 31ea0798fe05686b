/**
 * The text and reasoning of a session reply that were emitted, and the new text of each change of the document.
 *
 * Text is emitted as it grows and cannot be retracted; a patch that changes emitted text fails the reply.
 */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { Meter } from "../../domain/stream/cooperative.ts"
import { TextPieces, WholeCharacters } from "../../domain/stream/text.ts"
import { type UpstreamEvent, UpstreamReasoning, UpstreamText } from "../../domain/UpstreamEvent.ts"
import { type Change, fragmentChannel } from "./patchDocument.ts"

/** A string of the document that grew. */
export type Grown = Extract<Change, { readonly _tag: "Grown" }>

type ChannelName = "reasoning" | "text"

/** A text-bearing piece of the document. */
interface Piece {
  readonly channel: ChannelName
  readonly content: string
  /** The fragment's; 0 in documents without. */
  readonly index: number
}

/** A place where the document grows. */
interface Cursor {
  readonly owner: JsonRecord
  readonly key: string
  readonly channel: ChannelName | undefined
  /** The fragment's; 0 in documents without. */
  readonly index: number
}

/** The emitted text of one channel. */
class Channel {
  /** All of it, including held parts of incomplete characters. */
  readonly text = new TextPieces()
  readonly pieces = new WholeCharacters()
  /** The length of its part that is not in the document, because an empty snapshot restarted the document. */
  base = 0
  /** The index of the last fragment with text; growth before it would change emitted text. */
  last = -1
}

/**
 * The bound of compared characters: a base, and a number for each received character. Replies that only grow need no
 * comparison; a reply that is rewritten again and again fails.
 */
const comparedPerCharacter = 64
const comparedAtLeast = 1024 * 1024

const contentOf = (fragment: unknown): string => {
  const content = isRecord(fragment) ? fragment["content"] : undefined
  return typeof content === "string" ? content : ""
}

const leave = (channel: ChannelName, text: string, out: Array<UpstreamEvent>): void => {
  if (text !== "") out.push(channel === "text" ? UpstreamText(text) : UpstreamReasoning(text))
}

/** The place of the text that a change grows or replaces; `undefined` for other changes. */
const placeOf = (
  response: JsonRecord,
  owner: JsonRecord | undefined,
  path: ReadonlyArray<string>
): Cursor | undefined => {
  if (owner === undefined) return undefined
  const key = path[path.length - 1]!
  if (path.length === 4 && path[1] === "fragments" && key === "content") {
    return { owner, key, channel: fragmentChannel(owner), index: Number(path[2]) }
  }
  if (path.length !== 2 || Array.isArray(response["fragments"])) return undefined
  if (key !== "content" && key !== "thinking_content") return undefined
  return { owner, key, channel: key === "content" ? "text" : "reasoning", index: 0 }
}

/** Whether a change may have changed the reply's text. `response` is the document after it. */
export const touchesText = (change: Change, response: JsonRecord): boolean => {
  if (change._tag === "Root") return true
  const [first, second, , fourth] = change.path
  if (first !== "response") return false
  if (change.path.length === 1) return true
  if (second === "content" || second === "thinking_content") return !Array.isArray(response["fragments"])
  return second === "fragments" && (fourth === undefined || fourth === "content" || fourth === "type")
}

/** The emitted text of one reply. The `response` argument of its methods comes from the current document. */
export class VisibleText {
  /** UTF-16 units of emitted text and reasoning. */
  produced = 0
  /** The document begins with the emitted text, as of the last comparison. */
  consistent = true
  private readonly meter: Meter | undefined
  private readonly reasoning = new Channel()
  private readonly text = new Channel()
  /** The place where a bare string patch grows the document, and the text appended there that is not in the document yet. */
  private cursor: Cursor | undefined = undefined
  private readonly pending = new TextPieces()
  private compared = 0

  constructor(meter: Meter | undefined) {
    this.meter = meter
  }

  /** A bare string patch grows the text at the place of the last change, by `append`. */
  get follows(): boolean {
    return this.cursor !== undefined
  }

  /** UTF-16 units that were appended and are not in the document yet. */
  get unflushed(): number {
    return this.pending.length
  }

  /** The comparisons exceed the bound of a reply with this many received characters. */
  isCostly(received: number): boolean {
    return this.compared > comparedAtLeast + comparedPerCharacter * received
  }

  /** Grows the text at the place of the last change; `flush` adds it to the document. */
  append(text: string, out: Array<UpstreamEvent>): void {
    this.pending.push(text)
    this.growAt(this.cursor!, text, out)
  }

  /** Adds the appended text to the document. Has to be called before the document is read or changed. */
  flush(): void {
    if (this.cursor !== undefined && this.pending.length > 0) {
      this.cursor.owner[this.cursor.key] = (this.cursor.owner[this.cursor.key] as string) + this.pending.toString()
      this.pending.clear()
    }
    this.cursor = undefined
  }

  /** Makes this change the place of the next `append`, unless it grew text before the end. */
  continueAt(change: Grown, response: JsonRecord): void {
    if (change.path[0] !== "response") return
    const place = placeOf(response, change.owner, change.path)
    if (place === undefined) return
    if (place.channel !== undefined && this[place.channel].last > place.index) return
    this.cursor = place
  }

  /** Whether a response has no text. */
  isEmpty(response: JsonRecord): boolean {
    return this.pieces(response).every((piece) => piece.content === "")
  }

  /** A snapshot opened a round. The document continues after the emitted text if it is `empty`; otherwise it begins with it. */
  open(empty: boolean): void {
    this.reasoning.base = empty ? this.reasoning.text.length : 0
    this.text.base = empty ? this.text.text.length : 0
  }

  /** Compares the document with the emitted text and emits the rest, unless the two disagree. */
  compare(response: JsonRecord, out: Array<UpstreamEvent>): void {
    const position = { reasoning: this.reasoning.base, text: this.text.base }
    const growth: Array<Piece> = []
    this.consistent = true
    this.reasoning.last = -1
    this.text.last = -1
    this.count(this.reasoning.text.length + this.text.text.length)
    for (const { channel, content, index } of this.pieces(response)) {
      const visible = this[channel]
      const known = visible.text.toString()
      const start = position[channel]
      this.count(content.length)
      if (content !== "") visible.last = index
      position[channel] = start + content.length
      if (start >= known.length) {
        if (content !== "") growth.push({ channel, content, index })
      } else if (position[channel] <= known.length) {
        this.consistent &&= known.startsWith(content, start)
      } else {
        const overlap = known.length - start
        this.consistent &&= content.startsWith(start === 0 ? known : known.slice(start))
        growth.push({ channel, content: content.slice(overlap), index })
      }
    }
    this.consistent &&= position.reasoning >= this.reasoning.text.length && position.text >= this.text.text.length
    if (!this.consistent) return
    for (const { channel, content } of growth) this.grow(channel, content, out)
  }

  /** Handles one change whose own extent determines the new text; false if a comparison is needed. */
  follow(change: Change, response: JsonRecord, out: Array<UpstreamEvent>): boolean {
    if (change._tag === "Root" || !this.consistent) return false
    const { path } = change
    const fragments = response["fragments"]
    if (path[1] === "fragments" && Array.isArray(fragments)) {
      const isNew = change._tag === "Replaced" && path.length === 3 && change.before === undefined
      if (isNew || (change._tag === "Extended" && path.length === 2)) {
        this.growFragments(fragments, change._tag === "Extended" ? change.from : fragments.length - 1, out)
        return true
      }
    }
    if (change._tag === "Extended") return false
    const place = placeOf(response, change.owner, path)
    if (place === undefined) return false
    if (change._tag === "Grown") return this.growAt(place, change.text, out)
    const { before = "", value } = change
    if (place.channel === undefined) return true
    if (typeof before !== "string" || typeof value !== "string" || !value.startsWith(before)) return false
    return this.growAt(place, value.slice(before.length), out)
  }

  /** The reply is over: emits held parts of characters. */
  end(out: Array<UpstreamEvent>): void {
    leave("reasoning", this.reasoning.pieces.end(), out)
    leave("text", this.text.pieces.end(), out)
  }

  private pieces({ content, fragments, thinking_content: thinking }: JsonRecord): Array<Piece> {
    const found: Array<Piece> = []
    if (Array.isArray(fragments)) {
      this.count(fragments.length)
      fragments.forEach((fragment, index) => {
        const channel = fragmentChannel(fragment)
        if (channel !== undefined) found.push({ channel, content: contentOf(fragment), index })
      })
    } else {
      if (typeof thinking === "string") found.push({ channel: "reasoning", content: thinking, index: 0 })
      if (typeof content === "string") found.push({ channel: "text", content, index: 0 })
    }
    return found
  }

  private count(steps: number): void {
    this.compared += steps
    if (this.meter !== undefined) this.meter.steps += steps
  }

  /** Grows text at a place; false if that is inside emitted text. */
  private growAt({ channel, index }: Cursor, text: string, out: Array<UpstreamEvent>): boolean {
    if (channel === undefined || text === "") return true
    if (this[channel].last > index) return false
    this[channel].last = index
    this.grow(channel, text, out)
    return true
  }

  private growFragments(fragments: ReadonlyArray<unknown>, from: number, out: Array<UpstreamEvent>): void {
    for (let index = from; index < fragments.length; index++) {
      const channel = fragmentChannel(fragments[index])
      const content = contentOf(fragments[index])
      if (channel === undefined || content === "") continue
      this[channel].last = index
      this.grow(channel, content, out)
    }
  }

  private grow(channel: ChannelName, text: string, out: Array<UpstreamEvent>): void {
    if (text === "") return
    const visible = this[channel]
    visible.text.push(text)
    this.produced += text.length
    leave(channel, visible.pieces.take(text), out)
  }
}
