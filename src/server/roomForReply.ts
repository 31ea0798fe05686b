/**
 * A large reply is refused where it does not fit into what all requests may hold: until its client takes it, it would be held for
 * the connection.
 */
import type * as Fiber from "effect/Fiber"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { RequestStats } from "../completion/RequestStats.ts"
import { CurrentBufferedBytes, CurrentLimits } from "../config/CurrentLimits.ts"
import { tooMuchHeld } from "../http/receiveBody.ts"
import { isShared } from "./connections/sharedBytes.ts"
import { errorOfPath } from "./fallback.ts"

/** Bytes of a reply that is sent however much is held: a connection holds one at a time. */
const smallReply = 16 * 1024

/** A change has been made by the time that it is answered: a refusal would be untrue. */
const tellsChange = (method: string, path: string): boolean =>
  method !== "GET" && method !== "HEAD" && path.startsWith("/admin/")

/** The reply, or the refusal in its place. A large text is encoded, so that it is held once while it is sent. */
export const withRoom = (
  fiber: Fiber.Fiber<unknown, unknown>,
  response: HttpServerResponse.HttpServerResponse,
  method: string,
  path: string,
  stats: RequestStats
): HttpServerResponse.HttpServerResponse => {
  const { body } = response
  if (body._tag !== "Uint8Array" || body.contentLength <= smallReply || method === "HEAD") return response
  if (body.text === undefined && isShared(body.body)) return response
  const sum = fiber.getRef(CurrentBufferedBytes)
  const over = sum.used + body.contentLength - fiber.getRef(CurrentLimits)().buffered_bytes
  // What an upstream said was counted as it came.
  const isCounted = stats.attempts > 0 || tellsChange(method, path)
  if (over > 0 && !isCounted) {
    sum.refused = Math.max(sum.refused ?? 0, body.contentLength)
    stats.status = tooMuchHeld.status
    stats.error = tooMuchHeld.code
    return errorOfPath(path, tooMuchHeld, stats.id)
  }
  return body.text === undefined
    ? response
    : HttpServerResponse.setBody(response, HttpBody.uint8Array(body.body, body.contentType))
}
