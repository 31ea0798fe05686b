/**
 * Frames: the events of a recorded stream with the arrival of their last byte. The concatenated frames equal the stream.
 */
import type { RecordedBytes } from "./RecordedBytes.ts"

/** An event with its lines and terminator as sent, or a whole body. */
export interface Frame {
  /** Milliseconds since the request began, one decimal. */
  readonly at_ms: number
  readonly data: string
}

/** True for the content type of a stream of events. */
export const isEventStream = (contentType: string | undefined): boolean =>
  contentType !== undefined && /^text\/event-stream\b/i.test(contentType)

const lineFeed = 0x0a
const carriageReturn = 0x0d

/** End positions of the events: after the blank line that follows lines. More blank lines belong to the next event. */
const eventEnds = (bytes: Uint8Array): ReadonlyArray<number> => {
  const ends: Array<number> = []
  let hasLine = false
  let lineStart = 0
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!
    if (byte !== lineFeed && byte !== carriageReturn) continue
    const isBlank = at === lineStart
    if (byte === carriageReturn && bytes[at + 1] === lineFeed) at++
    lineStart = at + 1
    if (!isBlank) {
      hasLine = true
    } else if (hasLine) {
      ends.push(lineStart)
      hasLine = false
    }
  }
  if ((ends.at(-1) ?? 0) < bytes.length) ends.push(bytes.length)
  return ends
}

/** Splits a recorded body into frames; `began` is the start of the request on the clock of the marks. */
export const cutFrames = ({ bytes, contentType, marks }: RecordedBytes, began: number): ReadonlyArray<Frame> => {
  if (bytes.length === 0) return []
  const ends = isEventStream(contentType) ? eventEnds(bytes) : [bytes.length]
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  let from = 0
  let mark = 0
  let last = 0
  return ends.map((end) => {
    while (mark < marks.length - 1 && marks[mark]!.end < end) mark++
    const at = Math.max(last, Math.round(10 * ((marks[mark]?.at ?? began) - began)) / 10)
    last = at
    const data = text.toString("utf8", from, end)
    from = end
    return { at_ms: at, data }
  })
}
