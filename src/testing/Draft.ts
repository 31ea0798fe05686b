/**
 * An event stream before it is put into bytes: what faults of the stream change.
 */

/** One event. `sent` is how many pieces of the reply have left with it. */
export interface EventItem {
  readonly _tag: "Event"
  readonly event: string | undefined
  readonly data: string
  readonly sent: number
  /** Milliseconds of silence before it. */
  readonly wait: number
}

/** Text that is sent as it stands. */
export interface RawItem {
  readonly _tag: "Raw"
  readonly text: string
  readonly sent: number
}

/** The stream goes no further: it ends, breaks or falls silent. */
export interface StopItem {
  readonly _tag: "Stop"
  readonly how: "end" | "reset" | "hang"
}

export type Item = EventItem | RawItem | StopItem

/** How events are written. */
export interface Wire {
  readonly lineEnd: "\n" | "\r\n" | "\r"
  readonly comments: boolean
  readonly retryLines: boolean
  readonly multiLine: boolean
  readonly space: boolean
  /** Where chunks are cut beyond the ends of events: after every byte, or inside every character of several bytes. */
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
  /** In a continued round that starts with a snapshot: a snapshot of just what had left before. */
  readonly repeated: EventItem | undefined
}
