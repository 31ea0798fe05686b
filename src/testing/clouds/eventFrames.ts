/** Writes AWS's binary event stream, as Bedrock sends it. */
import { crc32 } from "node:zlib"

const headerOf = (name: string, value: string): Buffer => {
  const [key, text] = [Buffer.from(name), Buffer.from(value)]
  const head = Buffer.alloc(key.length + 4)
  head.writeUInt8(key.length, 0)
  key.copy(head, 1)
  head.writeUInt8(7, key.length + 1)
  head.writeUInt16BE(text.length, key.length + 2)
  return Buffer.concat([head, text])
}

/** A message of the stream. */
export const frame = (headers: Readonly<Record<string, string>>, payload: string | Uint8Array): Buffer => {
  const head = Buffer.concat(Object.entries(headers).map(([name, value]) => headerOf(name, value)))
  const body = Buffer.from(payload)
  const prelude = Buffer.alloc(12)
  prelude.writeUInt32BE(12 + head.length + body.length + 4, 0)
  prelude.writeUInt32BE(head.length, 4)
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8)
  const whole = Buffer.concat([prelude, head, body])
  const checksum = Buffer.alloc(4)
  checksum.writeUInt32BE(crc32(whole))
  return Buffer.concat([whole, checksum])
}

/** An event of the model. */
export const chunkFrame = (event: string): Buffer =>
  frame(
    { ":event-type": "chunk", ":content-type": "application/json", ":message-type": "event" },
    JSON.stringify({ bytes: Buffer.from(event).toString("base64"), p: "abcdefgh" })
  )

/** An exception in place of the events that would follow. */
export const exceptionFrame = (type: string, message: string): Buffer =>
  frame(
    { ":exception-type": type, ":content-type": "application/json", ":message-type": "exception" },
    JSON.stringify({ message })
  )

/** Server-sent events as messages of the stream. */
export const framesOf = (events: string): Buffer =>
  Buffer.concat(
    events.split("\n").filter((line) => line.startsWith("data: ")).map((line) =>
      chunkFrame(line.slice("data: ".length))
    )
  )
