/**
 * The fast lane of a streamed reply on node: a chunk as one write to the client's socket.
 *
 * `ServerResponse.write` makes four writes of a chunk and collects them until the next tick: as much work as everything else
 * that the gateway does for an event. This lane is taken only while all that was sent before has left; else text goes the
 * general way, through the response's stream.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import { ServerResponse } from "node:http"

/** Sends text at once. Returns false where it has to wait for what was sent before, or for the head. */
const sendBy = (response: ServerResponse) => (text: string): boolean => {
  const { socket } = response
  if (
    socket === null || !response.headersSent || !response.chunkedEncoding || response.writableCorked > 0 ||
    socket.writableLength > 0 || response.writableEnded || socket.destroyed
  ) return false
  socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
  return true
}

/** The fast lane of a request that came over a socket of a node server; `undefined` for any other. */
export const sendNow = (
  request: HttpServerRequest.HttpServerRequest | undefined
): ((text: string) => boolean) | undefined => {
  const response: unknown = request === undefined ? undefined : NodeHttpServerRequest.toServerResponse(request)
  return response instanceof ServerResponse ? sendBy(response) : undefined
}
