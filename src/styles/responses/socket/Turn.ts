/**
 * A turn of a WebSocket connection: a message that asks for a response, and the events of the response as messages.
 */
import type * as Headers from "effect/http/Headers"
import type { HeldBytes } from "../../../config/limits.ts"
import { isRecord } from "../../../domain/json.ts"
import type { Measured } from "../../../domain/stream/measureJson.ts"
import { MessageSource } from "../../../http/MessageSource.ts"
import type { ClientQueue } from "../../../http/ResponseBuffer.ts"
import type { StoredResponse } from "../store/ResponsesStore.ts"
import type { LaneName } from "./lanes.ts"

/** The response of a turn, as its lane keeps it. */
export interface TurnResponse extends StoredResponse {
  /** Bytes of the conversation and its response. */
  readonly size: number
}

/** What a turn needs of its connection. */
export interface TurnConnection {
  readonly queue: ClientQueue
  /** Sends frames of a turn immediately. Returns false if earlier bytes are still unsent. */
  readonly sendNow: (turn: Turn, frames: string) => boolean
  /** The response with this id that a lane of the connection keeps. */
  readonly find: (id: string) => TurnResponse | undefined
}

/** The fields of a message that are no fields of its request. */
export const envelopeFields = ["type", "stream_id", "generate"] as const

export class Turn extends MessageSource {
  readonly url = "/v1/responses"
  text: string
  readonly measured: Measured
  readonly lane: LaneName
  /** False for a warm-up, for which no server is asked. */
  readonly generates: boolean
  /** The share of the message in `limits.buffered_bytes`, until the turn is over. */
  readonly held: HeldBytes
  /** The final response, before its last event is sent. */
  response: TurnResponse | undefined
  /** The headers of the reply, for the first event. */
  headers: Headers.Headers | undefined
  readonly #connection: TurnConnection

  constructor(
    { generates, held, lane, measured, text }: Pick<Turn, "generates" | "held" | "lane" | "measured" | "text">,
    connection: TurnConnection
  ) {
    super()
    this.text = text
    this.measured = measured
    this.lane = lane
    this.generates = generates
    this.held = held
    this.#connection = connection
  }

  get queue(): ClientQueue {
    return this.#connection.queue
  }

  /** The message without the fields of its envelope. */
  bodyOf(message: unknown): unknown {
    if (!isRecord(message)) return message
    for (const field of envelopeFields) Reflect.deleteProperty(message, field)
    message["stream"] = true
    return message
  }

  sendNow(frames: string): boolean {
    return this.#connection.sendNow(this, frames)
  }

  /** Drops the message: its reply has begun. */
  forget(): void {
    this.text = ""
  }

  find(id: string): TurnResponse | undefined {
    return this.#connection.find(id)
  }
}

/** Headers of replies that messages have. */
const shown =
  /^(?:x-(?:upstream-)?request-id|retry-after(?:-ms)?|x-should-retry|x-gateway-.*|x-ratelimit-.*|x-codex-.*)$/

/** A field with the headers of a reply. */
export const headersField = (headers: Headers.Headers | undefined): string =>
  `,"headers":${JSON.stringify(Object.fromEntries(Object.entries(headers ?? {}).filter(([name]) => shown.test(name))))}`

/** A field that names the lane of a message; empty for the unnamed lane, and for a name that none can have. */
export const laneField = (lane: LaneName): string => lane === undefined ? "" : `,"stream_id":"${lane}"`

const colon = 0x3a

/** The events after which a response can be continued. */
const isFinal = /^event: response\.(?:completed|incomplete)\n/

/**
 * The messages for whole frames of an event stream: the data of each event with the fields of a message. Comments and the end marker have
 * none. The first event of a turn has the headers of the reply. `finished` is called before the last event of a response that can be
 * continued.
 */
export const messagesOf = (turn: Turn, frames: string, finished: () => void): Array<string> => {
  const messages: Array<string> = []
  let end = 0
  for (let at = 0; at < frames.length; at = end + 2) {
    end = frames.indexOf("\n\n", at)
    const data = frames.indexOf("data: ", at) + "data: ".length
    if (frames.charCodeAt(at) === colon || frames.startsWith("[DONE]", data)) continue
    if (isFinal.test(frames.slice(at, at + 32))) finished()
    const extra = turn.headers === undefined ? "" : headersField(turn.headers)
    turn.headers = undefined
    messages.push(`${frames.slice(data, end - 1)}${extra}${laneField(turn.lane)}}`)
  }
  return messages
}

/** Text messages as the frames of a server, which have no mask (RFC 6455, 5.2). */
export const textFrames = (messages: ReadonlyArray<string>): Buffer => {
  const sizes = messages.map((message) => Buffer.byteLength(message))
  const bytes = Buffer.allocUnsafe(sizes.reduce((sum, size) => sum + headSize(size) + size, 0))
  let at = 0
  for (const [i, message] of messages.entries()) {
    const size = sizes[i]!
    const head = headSize(size)
    bytes[at] = 0x81
    bytes[at + 1] = head === 2 ? size : head === 4 ? 126 : 127
    if (head === 4) bytes.writeUInt16BE(size, at + 2)
    else if (head === 10) bytes.writeBigUInt64BE(BigInt(size), at + 2)
    at += head
    at += bytes.write(message, at)
  }
  return bytes
}

const headSize = (size: number): number => size < 126 ? 2 : size < 65_536 ? 4 : 10
