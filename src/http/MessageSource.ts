/**
 * A request that came as a message of a WebSocket. It is handled as any other request; here is what stands in for node's request and
 * response: a body that has arrived, and the way of the reply's frames to the connection.
 */
import * as Headers from "effect/http/Headers"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type { Measured } from "../domain/stream/measureJson.ts"
import type { ClientQueue } from "./ResponseBuffer.ts"

/** The source of such a request. */
export abstract class MessageSource {
  readonly method = "POST"
  /** Its body has arrived, in the name that node has for it. */
  readonly complete = true
  abstract readonly url: string
  /** The message as it was received, and what it has; within the limits of a body. */
  abstract readonly text: string
  abstract readonly measured: Measured
  /** What waits for the client, over all replies of the connection. */
  abstract readonly queue: ClientQueue
  /** The body of the request, from the parsed message, which may be changed. */
  abstract bodyOf(message: unknown): unknown
  /** Sends frames immediately. Returns false if earlier bytes are still unsent. */
  abstract sendNow(frames: string): boolean
}

/** Makes the function that sends frames to the connection of a message. */
export const sendAsMessages = (source: MessageSource) => (frames: string): boolean => source.sendNow(frames)

/** Headers that are of the connection and its first request, not of its messages. */
const notOfMessages = /^(?:connection|upgrade|sec-websocket-.*|x-request-id|content-.*|expect|transfer-encoding)$/

/** The headers of a connection's messages: those of the request that opened it. */
export const messageHeaders = (opening: Headers.Headers): Headers.Headers =>
  Headers.fromInput([
    ...Object.entries(opening).filter(([name]) => !notOfMessages.test(name)),
    ["content-type", "application/json"]
  ])

/** The request of a message. */
export const messageRequest = (
  source: MessageSource,
  headers: Headers.Headers,
  { peerAddress, protocol, remoteAddress }: HttpServerRequest.HttpServerRequest
): HttpServerRequest.HttpServerRequest =>
  // The library reads the address and the method of this source, and nothing else before the body.
  HttpServerRequest.fromWeb(source as unknown as Request).modify({
    headers,
    peerAddress,
    remoteAddress,
    ...(protocol === undefined ? {} : { protocol })
  })
