/**
 * What of a session reply's document has left as text and reasoning, and what of a change is new.
 *
 * Text leaves as it grows: what is out is never taken back, so that a document which no longer begins with it is a failure.
 */
import { isRecord, type JsonRecord } from "../../domain/json.ts"
import type { Meter } from "../../domain/stream/slices.ts"
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

/** A place of the document that grows. */
interface Cursor {
  readonly owner: JsonRecord
  readonly key: string
  readonly channel: ChannelName | undefined
  /** The fragment's; 0 in documents without. */
  readonly index: number
}

/** What has left of one channel. */
class Channel {
  /** All of it, with what is held because it is no whole character yet. */
  readonly text = new TextPieces()
  readonly pieces = new WholeCharacters()
  /** How much of it is not in the document (an empty snapshot starts the document anew). */
  base = 0
  /** The last fragment with text: growth before it would land inside what has left. */
  last = -1
}

/**
 * Characters of the document that may be compared with what has left: so many for each character received, and some to begin
 * with. Replies that grow need none; one that is rewritten over and over is given up.
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

/** The place of the text that a change is of, where it is the text itself. */
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

/** True for a change that can have changed the reply's text. `response` is the document's after it. */
export const touchesText = (change: Change, response: JsonRecord): boolean => {
  if (change._tag === "Root") return true
  const [first, second, , fourth] = change.path
  if (first !== "response") return false
  if (change.path.length === 1) return true
  if (second === "content" || second === "thinking_content") return !Array.isArray(response["fragments"])
  return second === "fragments" && (fourth === undefined || fourth === "content" || fourth === "type")
}

/** What has left of one reply. The `response` that its methods take is the document's as it stands. */
export class VisibleText {
  /** UTF-16 units of text and reasoning that have left. */
  produced = 0
  /** The document begins with what has left, as far as it was compared. */
  consistent = true
  private readonly meter: Meter | undefined
  private readonly reasoning = new Channel()
  private readonly text = new Channel()
  /** Where a bare string patch grows the document, and what has been appended there but not yet written down. */
  private cursor: Cursor | undefined = undefined
  private readonly pending = new TextPieces()
  private compared = 0

  constructor(meter: Meter | undefined) {
    this.meter = meter
  }

  /** A bare string patch would grow the text where the last change did, and `append` takes it. */
  get follows(): boolean {
    return this.cursor !== undefined
  }

  /** UTF-16 units that were appended and are not in the document yet. */
  get unflushed(): number {
    return this.pending.length
  }

  /** More was compared than a reply of so many received characters may cost. */
  isCostly(received: number): boolean {
    return this.compared > comparedAtLeast + comparedPerCharacter * received
  }

  /** Grows the text where the last change did, and the document with the next `flush`. */
  append(text: string, out: Array<UpstreamEvent>): void {
    this.pending.push(text)
    this.growAt(this.cursor!, text, out)
  }

  /** Writes down in the document what was appended. To be called before the document is read or changed. */
  flush(): void {
    if (this.cursor !== undefined && this.pending.length > 0) {
      this.cursor.owner[this.cursor.key] = (this.cursor.owner[this.cursor.key] as string) + this.pending.toString()
      this.pending.clear()
    }
    this.cursor = undefined
  }

  /** Lets what was appended next go where this change went, if that is text at its end or no text at all. */
  continueAt(change: Grown, response: JsonRecord): void {
    if (change.path[0] !== "response") return
    const place = placeOf(response, change.owner, change.path)
    if (place === undefined) return
    if (place.channel !== undefined && this[place.channel].last > place.index) return
    this.cursor = place
  }

  /** True for a response without any text. */
  isEmpty(response: JsonRecord): boolean {
    return this.pieces(response).every((piece) => piece.content === "")
  }

  /** A snapshot opened a round: `empty` has the document go on after what has left, else it begins with it. */
  open(empty: boolean): void {
    this.reasoning.base = empty ? this.reasoning.text.length : 0
    this.text.base = empty ? this.text.text.length : 0
  }

  /** Compares the document with what has left: all beyond it is growth, unless the two disagree. */
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

  /** Handles one change of text where its own extent tells what grew; false where it does not. */
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

  /** The reply is over, whatever its end: lets out what is held. */
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

  /** Text grows at a place; false where that is inside of what has left. */
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
