/**
 * Server-sent events by the WHATWG rules ("9.2.6 Interpreting an event stream"): bytes to events, and events to text.
 *
 * One thing differs from a browser: an event that the end of the stream leaves without its blank line is delivered, since
 * servers and proxies that close early often drop nothing but that line. Its last line may be incomplete.
 */
import { BYTE_ORDER_MARK, COLON, NEWLINE, SPACE } from "./characters.ts"
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
}

/** UTF-16 units that the data of one event may have. */
export const sseLimit = 16 * 1024 * 1024

/** What stands before the data in its line. */
const longestName = "event: ".length

/**
 * Starts a decoder. Time is linear in the bytes however they are cut: each chunk is searched once, and what a chunk leaves
 * unfinished is a rope that is not read before its line ends. `id` and `retry` fields and comments are dropped.
 */
export const makeSseDecoder = (limit: number = sseLimit): SseDecoder => {
  // Keeps split characters and replaces invalid bytes. Byte order marks are left in: node's decoder drops two of them where
  // the first is split, and the standard drops one.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true })
  let started = false
  let line = ""
  let data = ""
  let hasData = false
  let name = ""
  let skipLineFeed = false
  let overflowed = false

  const dispatch = (out: Array<SseEvent>) => {
    if (hasData) out.push({ event: name === "" ? undefined : name, data })
    data = ""
    hasData = false
    name = ""
  }

  /** Reads the line `text[start, end)`. */
  const readLine = (text: string, start: number, end: number, out: Array<SseEvent>) => {
    if (start === end) return dispatch(out)
    if (text.startsWith("data:", start) && end - start >= 5) {
      const value = text.slice(text.charCodeAt(start + 5) === SPACE && end > start + 5 ? start + 6 : start + 5, end)
      return appendData(value)
    }
    let colon = start
    while (colon < end && text.charCodeAt(colon) !== COLON) colon++
    // Fields that matter have short names; a comment starts with the colon itself.
    if (colon === start || colon - start > 5) return
    const field = text.slice(start, colon)
    let from = Math.min(colon + 1, end)
    if (from < end && text.charCodeAt(from) === SPACE) from++
    if (field === "event") name = text.slice(from, end)
    else if (field === "data") appendData(text.slice(from, end))
  }

  const overflow = () => {
    overflowed = true
    line = ""
    data = ""
  }

  const appendData = (value: string) => {
    data = hasData ? data + "\n" + value : value
    hasData = true
    if (data.length > limit) overflow()
  }

  const readText = (text: string, out: Array<SseEvent>) => {
    let position = 0
    if (!started && text.length > 0) {
      started = true
      if (text.charCodeAt(0) === BYTE_ORDER_MARK) position = 1
    }
    if (skipLineFeed && text.length > 0) {
      skipLineFeed = false
      if (text.charCodeAt(0) === NEWLINE) position = 1
    }
    let carriageReturn = text.indexOf("\r", position)
    let lineFeed = text.indexOf("\n", position)
    while (!overflowed) {
      let end = lineFeed
      let next = end + 1
      if (carriageReturn !== -1 && (end === -1 || carriageReturn < end)) {
        end = carriageReturn
        next = end + 1
        if (lineFeed === next) next++
        else if (next === text.length) skipLineFeed = true
      }
      if (end === -1) break
      if (line === "") {
        readLine(text, position, end, out)
      } else {
        const whole = line + text.slice(position, end)
        line = ""
        readLine(whole, 0, whole.length, out)
      }
      position = next
      if (carriageReturn !== -1 && carriageReturn < position) carriageReturn = text.indexOf("\r", position)
      if (lineFeed !== -1 && lineFeed < position) lineFeed = text.indexOf("\n", position)
    }
    if (position < text.length) {
      line += position === 0 ? text : text.slice(position)
      if (line.length > limit + longestName) overflow()
    }
  }

  return {
    get overflowed() {
      return overflowed
    },
    push(bytes, out) {
      if (!overflowed) readText(decoder.decode(bytes, { stream: true }), out)
    },
    end(out) {
      if (overflowed) return
      readText(decoder.decode(), out)
      if (overflowed) return
      const last = line
      line = ""
      if (last !== "") readLine(last, 0, last.length, out)
      dispatch(out)
    }
  }
}

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
