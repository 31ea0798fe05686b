/**
 * Server-sent events by the WHATWG standard ("9.2.6 Interpreting an event stream"): bytes to events, and events to text.
 *
 * Unlike a browser, the decoder delivers an event without its blank line at the end of the stream, since servers and proxies that close
 * early often drop only that line. The last line of such an event may be incomplete.
 */
import { BYTE_ORDER_MARK, COLON, NEWLINE, SPACE } from "./characters.ts"
import { TextPieces } from "./text.ts"
import type { Machine } from "./transducer.ts"

/** One event. `event` is `undefined` without an `event:` line, or with an empty one; `data` joins its lines with newlines. */
export interface SseEvent {
  readonly event: string | undefined
  readonly data: string
}

/** A decoder of one stream. */
export interface SseDecoder extends Machine<Uint8Array, SseEvent> {
  /** A line or an event exceeded the limit: the rest of the stream was dropped. */
  readonly overflowed: boolean
  /** An upper bound of the strings that hold the unfinished line and event: few compared with their characters. */
  readonly heldStrings: number
}

/** The most UTF-16 units in the data of one event. */
const sseLimit = 16 * 1024 * 1024

/** The longest field name with its separator. */
const longestName = "event: ".length

class Decoder implements SseDecoder {
  overflowed = false
  private readonly limit: number
  // Joins split characters and replaces invalid bytes. `readText` drops the byte order mark: Node's decoder drops two of them if the
  // first one is split, while the standard drops one.
  private readonly decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  private started = false
  /** The unfinished line. */
  private readonly line = new TextPieces()
  /** The first line of data; most events have only one. */
  private data = ""
  private hasData = false
  /** All lines of data, if there are several. */
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
    // The fields that are read have short names; a comment begins with the colon.
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
 * Starts a decoder. Time is linear in the bytes, however they are cut: each chunk is searched once, and an unfinished line is read only
 * when it ends. Memory is linear in the characters, and bounded by `limit`. `id` and `retry` fields and comments are dropped.
 */
export const makeSseDecoder = (limit: number = sseLimit): SseDecoder => new Decoder(limit)

/** Ends a stream of the chat and Responses styles. */
export const sseDone = "data: [DONE]\n\n"

/** A comment line, which keeps a connection alive. `text` must not contain line ends. */
export const sseComment = (text: string): string => `: ${text}\n\n`

/** One event as text. `event` must not contain line ends; each line of `data` gets its own `data:`. */
export const encodeSse = (event: string | undefined, data: string): string => {
  const body = /[\r\n]/.test(data) ? data.replace(/\r\n|[\r\n]/g, "\ndata: ") : data
  return event === undefined ? `data: ${body}\n\n` : `event: ${event}\ndata: ${body}\n\n`
}
