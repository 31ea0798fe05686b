/**
 * The event stream of a reply, from events to lines and from lines to network chunks. Faults of the stream change its draft
 * before it is written.
 */
import { streamHeaders } from "../../contracts/session/writeReply.ts"
import { Chunk, Hang, Head, Reset, type Step, type Steps, Wait } from "./Call.ts"

/** One event. `sent` is the number of reply pieces that have left with it. */
export interface EventItem {
  readonly _tag: "Event"
  readonly event: string | undefined
  readonly data: string
  readonly sent: number
  /** Milliseconds of silence before it. */
  readonly wait: number
}

/** The stream stops here: it ends, breaks or falls silent. */
export interface StopItem {
  readonly _tag: "Stop"
  readonly how: "end" | "reset" | "hang"
}

export type Item = EventItem | StopItem

/** How events are written. */
export interface Wire {
  readonly lineEnd: "\n" | "\r\n" | "\r"
  readonly comments: boolean
  readonly retryLines: boolean
  readonly multiLine: boolean
  readonly space: boolean
  /** Where chunks are cut in addition to event ends: after every byte, or inside every multi-byte character. */
  readonly cut: "events" | "bytes" | "characters"
  /** Milliseconds between such cuts. */
  readonly cutWait: number
}

export const plainWire: Wire = {
  lineEnd: "\n",
  comments: false,
  retryLines: false,
  multiLine: false,
  space: true,
  cut: "events",
  cutWait: 0
}

export interface Draft {
  readonly items: ReadonlyArray<Item>
  readonly wire: Wire
  /** Pieces that had left before this round. */
  readonly from: number
  /** The first item that belongs to the end of the reply: usage, status, `close`. */
  readonly ending: Item
  /** For a continued round that starts with a snapshot: the snapshot of the pieces that had left before. */
  readonly repeated: EventItem | undefined
}

/** How fast a stream leaves. */
interface Speed {
  /** Milliseconds before each piece; `undefined` sends without delay. */
  readonly pace: number | undefined
  /** Events in one write. */
  readonly burst: number
}

/** The head of an event stream. */
const streamHead: Head = Head(200, streamHeaders)

const text = (item: EventItem, wire: Wire): string => {
  const { lineEnd } = wire
  const space = wire.space ? " " : ""
  const name = item.event === undefined ? "" : `event:${space}${item.event}${lineEnd}`
  // The lines of one event are joined by a newline, which JSON allows after its first bracket.
  const data = wire.multiLine && item.data.startsWith("{")
    ? `data:${space}{${lineEnd}data:${space}${item.data.slice(1)}`
    : `data:${space}${item.data}`
  const comment = wire.comments ? `: keep-alive${lineEnd}${lineEnd}` : ""
  const retry = wire.retryLines ? `id: ${item.sent}${lineEnd}retry: 3000${lineEnd}` : ""
  return `${comment}${retry}${name}${data}${lineEnd}${lineEnd}`
}

/** Cuts after every byte, or before every continuation byte of a character. */
const cutBytes = (bytes: Uint8Array, cut: "bytes" | "characters"): ReadonlyArray<Uint8Array> => {
  const pieces: Array<Uint8Array> = []
  let start = 0
  for (let i = 1; i < bytes.length; i++) {
    if (cut === "bytes" || (bytes[i]! & 0xc0) === 0x80) {
      pieces.push(bytes.subarray(start, i))
      start = i
    }
  }
  pieces.push(bytes.subarray(start))
  return pieces
}

/** Cuts within events are bounded, because each is a step in memory; later events leave whole. */
const maxCuts = 100_000

/** Writes events as steps, `burst` events to a chunk. */
class StepWriter {
  readonly steps: Array<Step> = [streamHead]
  private readonly draft: Draft
  private readonly speed: Speed
  private held = ""
  private heldEvents = 0
  private sent: number

  constructor(draft: Draft, speed: Speed) {
    this.draft = draft
    this.speed = speed
    this.sent = draft.from
  }

  /** Milliseconds of silence before an item. */
  private silence(item: EventItem): number | undefined {
    const paced = item.sent > this.sent ? this.speed.pace : undefined
    return item.wait === 0 ? paced : item.wait + (paced ?? 0)
  }

  flush(): void {
    if (this.held === "") return
    const bytes = Buffer.from(this.held)
    const { cut, cutWait } = this.draft.wire
    if (cut === "events" || this.steps.length > maxCuts) {
      this.steps.push(Chunk(bytes, this.sent))
    } else {
      for (const piece of cutBytes(bytes, cut)) this.steps.push(Chunk(piece, this.sent), Wait(cutWait))
    }
    this.held = ""
    this.heldEvents = 0
  }

  write(item: Item): void {
    if (item._tag === "Stop") {
      this.flush()
      if (item.how === "reset") this.steps.push(Reset)
      if (item.how === "hang") this.steps.push(Hang)
      return
    }
    const silence = this.silence(item)
    if (silence !== undefined) {
      this.flush()
      this.steps.push(Wait(silence))
    }
    this.held += text(item, this.draft.wire)
    this.sent = item.sent
    if (++this.heldEvents >= this.speed.burst) this.flush()
  }
}

/** Turns a drafted stream into steps. Items after a stop are never sent. */
export const writeStream = (draft: Draft, speed: Speed): Steps => {
  const writer = new StepWriter(draft, speed)
  for (const item of draft.items) {
    writer.write(item)
    if (item._tag === "Stop") return writer.steps
  }
  writer.flush()
  return writer.steps
}

/** A recorded stream, byte for byte. `chunk` is the number of bytes in one write, by default all of them. */
export const rawStream = (raw: string | Uint8Array, chunk: number | undefined): Steps => {
  const bytes = typeof raw === "string" ? Buffer.from(raw) : raw
  if (chunk === undefined) return [streamHead, Chunk(bytes, 0)]
  const steps: Array<Step> = [streamHead]
  for (let i = 0; i < bytes.length; i += chunk) steps.push(Chunk(bytes.subarray(i, i + chunk), 0), Wait(0))
  return steps
}
