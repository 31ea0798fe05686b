/**
 * Memory for whole replies of the gateway's own. One that does not fit into `buffered_bytes` is refused; large ones are sent one
 * at a time. The connection counts a reply until its client has read it.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { Request } from "../completion/Request.ts"
import { tooMuchHeld } from "../http/receiveBody.ts"
import { hasRoom, inTurn, largeReply } from "../http/WorkLimit.ts"
import { isShared } from "./connections/Connection.ts"
import { errorOfPath } from "./fallback.ts"

/** Maximum size of replies without a check; a connection holds one at a time. */
const smallReply = 16 * 1024

/** A change is complete when its reply is ready, so an error would be wrong. */
const confirmsChange = (method: string, path: string): boolean =>
  method !== "GET" && method !== "HEAD" && path.startsWith("/admin/")

/** Drops the text of an encoded body, so that it is in memory once. */
const encoded = (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
  const { body } = response
  return body._tag === "Uint8Array" && body.text !== undefined
    ? HttpServerResponse.setBody(response, HttpBody.uint8Array(body.body, body.contentType))
    : response
}

/** Returns the reply when it may be sent, or an error instead. */
export const withRoom = (
  fiber: Fiber.Fiber<unknown, unknown>,
  response: HttpServerResponse.HttpServerResponse,
  method: string,
  path: string,
  { held: heldBytes, id, stats }: Request
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const { body } = response
  if (body._tag !== "Uint8Array" || body.contentLength <= smallReply || method === "HEAD") {
    return Effect.succeed(response)
  }
  const held = body.text === undefined && isShared(body.body) ? 0 : body.contentLength
  // Replies of the upstream were counted on arrival.
  const isCounted = held === 0 || heldBytes.countsReply || confirmsChange(method, path)
  if (!isCounted && !hasRoom(fiber, held)) {
    stats.status = tooMuchHeld.status
    stats.error = tooMuchHeld.code
    return Effect.succeed(errorOfPath(path, tooMuchHeld, id))
  }
  return body.contentLength < largeReply
    ? Effect.succeed(encoded(response))
    : Effect.map(inTurn(held), () => encoded(response))
}
