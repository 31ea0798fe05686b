/**
 * The fast lane of a streamed reply on node: a chunk as one write to the client's socket, past the response's stream.
 *
 * `ServerResponse.write` makes four writes of a chunk and collects them until the next tick: as much work as everything else
 * that the gateway does for an event. This lane is taken only while the stream's reader waits and all that was sent before has
 * left; else text goes the general way.
 */
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import { ServerResponse } from "node:http"

/** Sends text at once. Returns false where it has to wait for what was sent before. */
const sendBy = (response: ServerResponse) => {
  let hasBegun = false
  return (text: string): boolean => {
    const { socket } = response
    if (
      socket === null || !response.headersSent || !response.chunkedEncoding || response.writableCorked > 0 ||
      socket.writableLength > 0 || response.writableEnded || socket.destroyed
    ) return false
    // The head goes out with the first piece.
    if (hasBegun) socket.write(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
    else response.write(text)
    hasBegun = true
    return true
  }
}

/** The fast lane of a request that came over a socket of a node server; `undefined` for any other. */
export const sendNow = (
  request: HttpServerRequest.HttpServerRequest | undefined
): ((text: string) => boolean) | undefined => {
  const response: unknown = request === undefined ? undefined : NodeHttpServerRequest.toServerResponse(request)
  return response instanceof ServerResponse ? sendBy(response) : undefined
}
