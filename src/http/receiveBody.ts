/**
 * Receives the text of a request body within the limits of its size, of its pace, and of the bytes held for all requests.
 */
import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Readable } from "node:stream"
import type { Deadlines } from "../config/clock/Deadlines.ts"
import { type Held, holdBytes } from "../config/limits.ts"
import { type GatewayError, gatewayError } from "../domain/GatewayError.ts"
import type { Limits } from "../domain/limits.ts"
import { BYTE_ORDER_MARK } from "../domain/stream/characters.ts"
import { TextPieces } from "../domain/stream/text.ts"
import { BodyPace, notReadable, pacedBody } from "./BodyPace.ts"
import { decoded, encodingOf } from "./contentEncoding.ts"
import { MessageSource } from "./MessageSource.ts"

/** Bodies up to this size are not counted: node buffers as much of an unread body. `body_bytes` is never less. */
export const smallBody = 64 * 1024

const sizeOf = (bytes: number): string => {
  const [unit, name] = bytes < 1024 * 1024 ? [1024, "KiB"] : [1024 * 1024, "MiB"]
  return bytes % unit === 0 ? `${bytes / unit} ${name}` : `${bytes} bytes`
}

/** The error for a body beyond the limit of bytes. */
export const tooLarge = (limit: number) =>
  gatewayError("request_too_large", `The request body is larger than the limit of ${sizeOf(limit)}`)

/** The error for requests that exceed `buffered_bytes` together. */
export const tooMuchHeld = gatewayError(
  "rate_limit_exceeded",
  "The gateway is busy: too many large requests are in progress. Retry later.",
  { retryAfter: 5, cause: { setting: "limits.buffered_bytes" } }
)

const decoder = new TextDecoder()

/**
 * Decodes UTF-8 that arrives in chunks, cut anywhere. Chunks are decoded as they arrive: a large body held as bytes and as text
 * takes external memory twice, and external memory triggers full collections.
 */
export class ArrivingText {
  #first: Uint8Array | undefined
  #decoder: TextDecoder | undefined
  readonly #text = new TextPieces()

  /** An upper bound of the strings in memory. */
  get heldStrings(): number {
    return this.#text.strings
  }

  add(bytes: Uint8Array): void {
    if (this.#first === undefined) {
      this.#first = bytes
      return
    }
    if (this.#decoder === undefined) {
      this.#decoder = new TextDecoder("utf-8", { ignoreBOM: true })
      this.#text.push(this.#decoder.decode(this.#first, { stream: true }))
    }
    this.#text.push(this.#decoder.decode(bytes, { stream: true }))
  }

  /** Returns the whole text and releases it. */
  end(): string {
    const first = this.#first
    this.#first = undefined
    if (this.#decoder === undefined) return decoder.decode(first)
    const text = this.#text.toString() + this.#decoder.decode()
    this.#text.clear()
    // Node's decoder would remove it at the start of any chunk.
    return text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text
  }
}

const receiveLarge = Effect.fnUntraced(function*(
  request: HttpServerRequest.HttpServerRequest,
  limits: Limits,
  limit: number,
  encoding: string
): Effect.fn.Return<string, GatewayError, Scope.Scope> {
  const held = yield* holdBytes
  const text = new ArrivingText()
  let bytes = 0
  const body = decoded(encoding, limit, tooLarge(limit))(pacedBody(request, limits))
  yield* Stream.runForEachArray(body, (chunks) => {
    let fits = true
    for (const chunk of chunks) {
      text.add(chunk)
      bytes += chunk.length
      fits = held.add(chunk.length)
    }
    return bytes > limit ? Effect.fail(tooLarge(limit)) : fits ? Effect.void : Effect.fail(tooMuchHeld)
  })
  return text.end()
})

const smallBodySize = ByteSize.bytes(smallBody)

/** The part of a node request that reading uses. */
type NodeSource = Pick<Readable, "on" | "off" | "pause" | "destroyed" | "readableEnded">

const isNodeSource = (source: object): source is NodeSource => "readableEnded" in source && "on" in source

/** Reads a body from a node request in one callback, without a stream or a timer of its own. */
const receiveFrom = (
  source: NodeSource,
  deadlines: Deadlines["Service"],
  limits: Limits,
  limit: number,
  held: Held | undefined
): Effect.Effect<string, GatewayError> =>
  Effect.callback((resume) => {
    if (source.destroyed || source.readableEnded) return resume(Effect.fail(notReadable))
    const text = new ArrivingText()
    const pace = new BodyPace(limits)
    let bytes = 0
    let since = deadlines.now()
    let isOver = false
    // After a complete body the listeners stay: removing them costs more.
    const leave = () => {
      isOver = true
      deadline.cancel()
      source.off("data", onData)
    }
    const fail = (error: GatewayError) => {
      if (isOver) return
      leave()
      // The server discards the rest after the response.
      source.pause()
      resume(Exit.fail(error))
    }
    const onData = (chunk: Uint8Array) => {
      text.add(chunk)
      bytes += chunk.length
      const now = deadlines.now()
      pace.arrived(chunk.length, now - since)
      since = now
      deadline.at = now + pace.patience
      if (bytes > limit) fail(tooLarge(limit))
      else if (held?.add(chunk.length) === false) fail(tooMuchHeld)
    }
    const onEnd = () => {
      if (isOver) return
      isOver = true
      deadline.cancel()
      resume(Exit.succeed(text.end()))
    }
    const onBroken = () => fail(notReadable)
    const deadline = deadlines.add(since + pace.patience, () => fail(pace.fault))
    source.on("data", onData).on("end", onEnd).on("error", onBroken).on("close", onBroken)
    return Effect.sync(leave)
  })

const receiveSmall = (request: HttpServerRequest.HttpServerRequest, limits: Limits) => {
  const pace = new BodyPace(limits)
  return request.text.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, smallBodySize),
    Effect.mapError(() => notReadable),
    Effect.timeoutOrElse({ duration: pace.patience, orElse: () => Effect.fail(pace.fault) })
  )
}

/**
 * Receives a body of at most `bytes` bytes and at most `body_bytes`, which count as they are decoded. Fails with 413 for a larger body, with 415
 * for an encoding that is not read, with 408 for one that comes too slowly (`BodyPace`), with 429 if the requests exceed `buffered_bytes` together.
 */
export const receiveBody = (
  request: HttpServerRequest.HttpServerRequest,
  limits: Limits,
  deadlines: Deadlines["Service"] | undefined,
  bytes: number | undefined
): Effect.Effect<string, GatewayError, Scope.Scope> => {
  const { source } = request
  if (source instanceof MessageSource) return Effect.succeed(source.text)
  // A web request without a body has no stream to read.
  if (source instanceof Request && source.body === null) return Effect.succeed("")
  const limit = Math.min(bytes ?? limits.body_bytes, limits.body_bytes)
  const declared = Number(request.headers["content-length"])
  if (declared > limit) return Effect.fail(tooLarge(limit))
  const encoding = encodingOf(request)
  if (Result.isFailure(encoding)) return Effect.fail(encoding.failure)
  if (encoding.success !== "identity") return receiveLarge(request, limits, limit, encoding.success)
  const isSmall = declared <= smallBody
  // Effect's reader sends `100 Continue` to a client that expects it.
  if (deadlines !== undefined && isNodeSource(source) && request.headers["expect"] === undefined) {
    if (isSmall) return receiveFrom(source, deadlines, limits, limit, undefined)
    return Effect.flatMap(holdBytes, (held) => receiveFrom(source, deadlines, limits, limit, held))
  }
  return isSmall ? receiveSmall(request, limits) : receiveLarge(request, limits, limit, encoding.success)
}
