/**
 * Server-sent events by the WHATWG rules ("9.2.6 Interpreting an event stream"): bytes to events, and events to text.
 *
 * One thing differs from a browser: an event that the end of the stream leaves without its blank line is delivered, since
 * servers and proxies that close early often drop nothing but that line. Its last line may be incomplete.
 */
import { BYTE_ORDER_MARK, COLON, NEWLINE, SPACE } from "./characters.ts"
import { TextPieces } from "./text.ts"
import type { Machine } from "./transducer.ts"

/** One event. `event` is `undefined` where no `event:` line (or an empty one) was sent; `data` joins its lines by NEWLINE. */
export interface SseEvent {
  readonly event: string | undefined
  readonly data: string
}

/** A decoder of one stream. */
export interface SseDecoder extends Machine<Uint8Array, SseEvent> {
  /** A line or an event exceeded the limit: all that followed was dropped, and the stream cannot be relied upon. */
  readonly overflowed: boolean
  /** The most strings that the unfinished line and event can be held as: few beside their characters, however they came. */
  readonly heldStrings: number
}

/** UTF-16 units that the data of one event may have. */
export const sseLimit = 16 * 1024 * 1024

/** What stands before the data in its line. */
const longestName = "event: ".length

class Decoder implements SseDecoder {
  overflowed = false
  private readonly limit: number
  // Keeps split characters and replaces invalid bytes. Byte order marks are left in: node's decoder drops two of them where
  // the first is split, and the standard drops one.
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  private started = false
  /** The line that the chunks so far leave unfinished. */
  private readonly line = new TextPieces()
  /** The first line of data; most events have one. */
  private data = ""
  private hasData = false
  /** All lines of data where there are several. */
  private readonly lines = new TextPieces()
  private name = ""
  private skipLineFeed = false

  constructor(limit: number) {
    this.limit = limit
  }

  get heldStrings(): number {
    return this.line.strings + this.lines.strings + 1
  }

  push(bytes: Uint8Array, out: Array<SseEvent>): void {
    if (!this.overflowed) this.readText(this.decoder.decode(bytes, { stream: true }), out)
  }

  end(out: Array<SseEvent>): void {
    if (this.overflowed) return
    this.readText(this.decoder.decode(), out)
    if (this.overflowed) return
    const last = this.line.toString()
    this.line.clear()
    if (last !== "") this.readLine(last, 0, last.length, out)
    this.dispatch(out)
  }

  private dispatch(out: Array<SseEvent>): void {
    if (this.hasData) {
      const data = this.lines.length === 0 ? this.data : this.lines.toString()
      out.push({ event: this.name === "" ? undefined : this.name, data })
    }
    this.clearData()
    this.hasData = false
    this.name = ""
  }

  private clearData(): void {
    this.data = ""
    if (this.lines.length > 0) this.lines.clear()
  }

  /** Reads the line `text[start, end)`. */
  private readLine(text: string, start: number, end: number, out: Array<SseEvent>): void {
    if (start === end) return this.dispatch(out)
    if (text.startsWith("data:", start) && end - start >= 5) {
      const value = text.slice(text.charCodeAt(start + 5) === SPACE && end > start + 5 ? start + 6 : start + 5, end)
      return this.appendData(value)
    }
    let colon = start
    while (colon < end && text.charCodeAt(colon) !== COLON) colon++
    // Fields that matter have short names; a comment starts with the colon itself.
    if (colon === start || colon - start > 5) return
    const field = text.slice(start, colon)
    let from = Math.min(colon + 1, end)
    if (from < end && text.charCodeAt(from) === SPACE) from++
    if (field === "event") this.name = text.slice(from, end)
    else if (field === "data") this.appendData(text.slice(from, end))
  }

  private overflow(): void {
    this.overflowed = true
    this.line.clear()
    this.clearData()
  }

  private appendData(value: string): void {
    if (!this.hasData) {
      this.data = value
      this.hasData = true
      if (value.length > this.limit) this.overflow()
      return
    }
    if (this.lines.length === 0) this.lines.push(this.data)
    this.lines.push("\n")
    this.lines.push(value)
    if (this.lines.length > this.limit) this.overflow()
  }

  private readText(text: string, out: Array<SseEvent>): void {
    let position = 0
    if (!this.started && text.length > 0) {
      this.started = true
      if (text.charCodeAt(0) === BYTE_ORDER_MARK) position = 1
    }
    if (this.skipLineFeed && text.length > 0) {
      this.skipLineFeed = false
      if (text.charCodeAt(0) === NEWLINE) position = 1
    }
    let carriageReturn = text.indexOf("\r", position)
    let lineFeed = text.indexOf("\n", position)
    while (!this.overflowed) {
      let end = lineFeed
      let next = end + 1
      if (carriageReturn !== -1 && (end === -1 || carriageReturn < end)) {
        end = carriageReturn
        next = end + 1
        if (lineFeed === next) next++
        else if (next === text.length) this.skipLineFeed = true
      }
      if (end === -1) break
      if (this.line.length === 0) {
        this.readLine(text, position, end, out)
      } else {
        this.line.push(text.slice(position, end))
        const whole = this.line.toString()
        this.line.clear()
        this.readLine(whole, 0, whole.length, out)
      }
      position = next
      if (carriageReturn !== -1 && carriageReturn < position) carriageReturn = text.indexOf("\r", position)
      if (lineFeed !== -1 && lineFeed < position) lineFeed = text.indexOf("\n", position)
    }
    if (position < text.length) {
      this.line.push(position === 0 ? text : text.slice(position))
      if (this.line.length > this.limit + longestName) this.overflow()
    }
  }
}

/**
 * Starts a decoder. Time is linear in the bytes however they are cut: each chunk is searched once, and what a chunk leaves
 * unfinished is not read before its line ends. So is memory in characters: lines and chunks of one character are joined as
 * they come. `id` and `retry` fields and comments are dropped.
 */
export const makeSseDecoder = (limit: number = sseLimit): SseDecoder => new Decoder(limit)

/** Ends a stream of the chat and Responses styles. */
export const sseDone = "data: [DONE]\n\n"

/** A comment line, which keeps a connection alive and means nothing. `text` must hold no line end. */
export const sseComment = (text: string): string => `: ${text}\n\n`

/**
 * One event as text. `event` must hold no line end; `data` may, as JSON never does: each of its lines gets its own `data:`.
 */
export const encodeSse = (event: string | undefined, data: string): string => {
  const body = /[\r\n]/.test(data) ? data.replace(/\r\n|[\r\n]/g, "\ndata: ") : data
  return event === undefined ? `data: ${body}\n\n` : `event: ${event}\ndata: ${body}\n\n`
}
