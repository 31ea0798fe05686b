/**
 * Reads AWS's binary event stream (`application/vnd.amazon.eventstream`) and writes its events as server-sent events.
 *
 * A message has a prelude (its length, that of its headers, and a checksum of both), headers, a payload, and a checksum of all before. An
 * `event` has JSON whose `bytes` are the event of the model in base64; an `exception` becomes an event `error`. Time is linear in the bytes,
 * however they are cut, and memory is bounded by the longest message.
 */
import { isRecord, type JsonRecord } from "../json.ts"
import { encodeSse } from "./sse.ts"
import type { Machine } from "./transducer.ts"

/** Bytes before the headers, and behind the payload. */
const prelude = 12
const trailer = 4

/** Bytes of one message: AWS's own limit is 16 MiB of payload. */
const longestMessage = 17 * 1024 * 1024

const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1
  return value
})

/** The checksum CRC-32 of bytes. */
export const crc32 = (bytes: Uint8Array): number => {
  let value = ~0
  for (let i = 0; i < bytes.length; i++) value = table[(value ^ bytes[i]!) & 0xff]! ^ (value >>> 8)
  return ~value >>> 0
}

/** Bytes of the value of a header by its type; -1 for a value with its length before it. */
const sizes: ReadonlyArray<number> = [0, 0, 1, 2, 4, 8, -1, -1, 8, 16]
const typeOfText = 7

const utf8 = new TextDecoder()

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)

/** The texts of a message's headers by their names; `undefined` for headers of another form. */
const headersIn = (bytes: Uint8Array): ReadonlyMap<string, string> | undefined => {
  const view = viewOf(bytes)
  const headers = new Map<string, string>()
  for (let at = 0; at < bytes.length;) {
    const nameEnd = at + 1 + bytes[at]!
    if (nameEnd >= bytes.length) return undefined
    const type = bytes[nameEnd]!
    const size = sizes[type]
    if (size === undefined || (size === -1 && nameEnd + 3 > bytes.length)) return undefined
    const start = nameEnd + (size === -1 ? 3 : 1)
    const end = start + (size === -1 ? view.getUint16(nameEnd + 1) : size)
    if (end > bytes.length) return undefined
    if (type === typeOfText) {
      headers.set(utf8.decode(bytes.subarray(at + 1, nameEnd)), utf8.decode(bytes.subarray(start, end)))
    }
    at = end
  }
  return headers
}

/** The fields of a payload; none of one that is no object of JSON. */
const fieldsIn = (payload: string): JsonRecord => {
  try {
    const value: unknown = JSON.parse(payload)
    return isRecord(value) ? value : {}
  } catch {
    return {}
  }
}

/** The server-sent event of a message; empty for a message without an event, `undefined` for one of another form. */
const eventOf = (message: Uint8Array, headersLength: number): string | undefined => {
  const headers = headersIn(message.subarray(prelude, prelude + headersLength))
  if (headers === undefined) return undefined
  const { Message, bytes, message: words = Message } = fieldsIn(
    utf8.decode(message.subarray(prelude + headersLength, message.length - trailer))
  )
  const type = headers.get(":message-type")
  if (type === "exception" || type === "error") {
    const code = headers.get(":exception-type") ?? headers.get(":error-code") ?? type
    const said = typeof words === "string" ? words : headers.get(":error-message") ?? code
    return encodeSse("error", JSON.stringify({ type: "error", error: { type: code, message: said } }))
  }
  if (headers.get(":event-type") !== "chunk") return ""
  return typeof bytes === "string" ? encodeSse(undefined, Buffer.from(bytes, "base64").toString("utf8")) : undefined
}

/** A reader of one stream. */
export class EventStream implements Machine<Uint8Array, Uint8Array> {
  /** The stream is no event stream from here on: a checksum, a length or a header is wrong, or it has ended within a message. */
  isBroken = false
  #held: Array<Uint8Array> = []
  #length = 0
  /** Bytes of the unfinished message; those of its prelude until they are there. */
  #wanted = prelude

  push(bytes: Uint8Array, out: Array<Uint8Array>): void {
    if (this.isBroken) return
    this.#held.push(bytes)
    this.#length += bytes.length
    if (this.#length < this.#wanted) return
    let rest = this.#held.length === 1 ? bytes : Buffer.concat(this.#held)
    let text = ""
    while (rest.length >= this.#wanted) {
      const view = viewOf(rest)
      if (this.#wanted === prelude) {
        const length = view.getUint32(0)
        const isWrong = crc32(rest.subarray(0, 8)) !== view.getUint32(8) || length > longestMessage ||
          length < prelude + view.getUint32(4) + trailer
        if (isWrong) {
          this.isBroken = true
          break
        }
        this.#wanted = length
        continue
      }
      const message = rest.subarray(0, this.#wanted)
      const checked = this.#wanted - trailer
      const event = crc32(message.subarray(0, checked)) === view.getUint32(checked)
        ? eventOf(message, view.getUint32(4))
        : undefined
      if (event === undefined) {
        this.isBroken = true
        break
      }
      text += event
      rest = rest.subarray(this.#wanted)
      this.#wanted = prelude
    }
    this.#held = this.isBroken || rest.length === 0 ? [] : [rest]
    this.#length = rest.length
    if (text !== "") out.push(Buffer.from(text))
  }

  end(): void {
    if (this.#length > 0) this.isBroken = true
  }
}
