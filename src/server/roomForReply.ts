/**
 * Room for whole replies: a large one is refused where it does not fit into what all requests may hold, and sent when its turn
 * comes. Until its client takes it, it is held for the connection.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { RequestStats } from "../completion/RequestStats.ts"
import { hasRoom, inTurn, largeReply } from "../http/largeReply.ts"
import { tooMuchHeld } from "../http/receiveBody.ts"
import { isShared } from "./connections/sharedBytes.ts"
import { errorOfPath } from "./fallback.ts"

/** Bytes of a reply that is sent however much is held: a connection holds one at a time. */
const smallReply = 16 * 1024

/** A change has been made by the time that it is answered: a refusal would be untrue. */
const tellsChange = (method: string, path: string): boolean =>
  method !== "GET" && method !== "HEAD" && path.startsWith("/admin/")

/** A text that is encoded is held once while it is sent. */
const encoded = (response: HttpServerResponse.HttpServerResponse): HttpServerResponse.HttpServerResponse => {
  const { body } = response
  return body._tag === "Uint8Array" && body.text !== undefined
    ? HttpServerResponse.setBody(response, HttpBody.uint8Array(body.body, body.contentType))
    : response
}

/** The reply when it may be sent, or the refusal in its place. */
export const withRoom = (
  fiber: Fiber.Fiber<unknown, unknown>,
  response: HttpServerResponse.HttpServerResponse,
  method: string,
  path: string,
  stats: RequestStats
): Effect.Effect<HttpServerResponse.HttpServerResponse> => {
  const { body } = response
  if (body._tag !== "Uint8Array" || body.contentLength <= smallReply || method === "HEAD") {
    return Effect.succeed(response)
  }
  const held = body.text === undefined && isShared(body.body) ? 0 : body.contentLength
  // What an upstream said was counted as it came.
  const isCounted = held === 0 || stats.attempts > 0 || tellsChange(method, path)
  if (!isCounted && !hasRoom(fiber, held)) {
    stats.status = tooMuchHeld.status
    stats.error = tooMuchHeld.code
    return Effect.succeed(errorOfPath(path, tooMuchHeld, stats.id))
  }
  return body.contentLength < largeReply
    ? Effect.succeed(encoded(response))
    : Effect.map(inTurn(held), () => encoded(response))
}
