/**
 * An event stream as bytes: events to lines, lines to network chunks.
 */
import type { Draft, EventItem, Item, Wire } from "./Draft.ts"
import { Chunk, Hang, Head, Reset, type Step, Wait } from "./Step.ts"

/** How fast a stream leaves. */
export interface Speed {
  /** Milliseconds before each piece; `undefined` sends as fast as it goes. */
  readonly pace: number | undefined
  /** Events in one write. */
  readonly burst: number
}

/** The head of an event stream. */
export const streamHead: Head = Head(200, {
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache"
})

const text = (item: EventItem, wire: Wire): string => {
  const { lineEnd } = wire
  const space = wire.space ? " " : ""
  const name = item.event === undefined ? "" : `event:${space}${item.event}${lineEnd}`
  // JSON may be broken after its first bracket: the lines of one event are joined by a newline.
  const data = wire.multiLine && item.data.startsWith("{")
    ? `data:${space}{${lineEnd}data:${space}${item.data.slice(1)}`
    : `data:${space}${item.data}`
  const comment = wire.comments ? `: keep-alive${lineEnd}${lineEnd}` : ""
  const retry = wire.retryLines ? `id: ${item.sent}${lineEnd}retry: 3000${lineEnd}` : ""
  return `${comment}${retry}${name}${data}${lineEnd}${lineEnd}`
}

/** Cuts after every byte, or before every byte that goes on with a character. */
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

/** The most cuts within events; beyond them events leave whole, since each cut is a step to hold. */
const maxCuts = 100_000

/** Writes steps, several events to a chunk where the speed says so. */
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
    switch (item._tag) {
      case "Stop":
        this.flush()
        if (item.how === "reset") this.steps.push(Reset)
        if (item.how === "hang") this.steps.push(Hang)
        return
      case "Raw":
        this.held += item.text
        break
      case "Event": {
        const silence = this.silence(item)
        if (silence !== undefined) {
          this.flush()
          this.steps.push(Wait(silence))
        }
        this.held += text(item, this.draft.wire)
      }
    }
    this.sent = item.sent
    if (++this.heldEvents >= this.speed.burst) this.flush()
  }
}

/** Turns a drafted stream into steps. What stands after a stop is never sent. */
export const writeStream = (draft: Draft, speed: Speed): ReadonlyArray<Step> => {
  const writer = new StepWriter(draft, speed)
  for (const item of draft.items) {
    writer.write(item)
    if (item._tag === "Stop") return writer.steps
  }
  writer.flush()
  return writer.steps
}
