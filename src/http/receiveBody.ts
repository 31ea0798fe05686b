/**
 * Receives the text of a request body within the limits of its size, of silence, and of what all requests hold in sum.
 */
import * as ByteSize from "effect/ByteSize"
import * as Effect from "effect/Effect"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { CurrentLimits, holdBytes } from "../config/CurrentLimits.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { gatewayError, invalidRequest } from "../domain/GatewayError.ts"

/** Bodies up to this size are not counted: node buffers as much of a body that nobody reads. */
const smallBody = 64 * 1024

const sizeOf = (bytes: number): string => {
  const [unit, name] = bytes < 1024 * 1024 ? [1024, "KiB"] : [1024 * 1024, "MiB"]
  return bytes % unit === 0 ? `${bytes / unit} ${name}` : `${bytes} bytes`
}

const tooLarge = (limit: number) =>
  gatewayError("request_too_large", `The request body is larger than the limit of ${sizeOf(limit)}`)
const tooSlow = (seconds: number) =>
  gatewayError("request_timeout", `The request body did not arrive: nothing came for ${seconds} seconds`)
const notReadable = invalidRequest("The request body could not be read")

/** More is held for requests than `buffered_bytes` allows. */
export const tooMuchHeld = gatewayError(
  "rate_limit_exceeded",
  "Too many large requests are being handled (limits.buffered_bytes)",
  { retryAfter: 5 }
)

const concat = (chunks: ReadonlyArray<Uint8Array>, length: number): Uint8Array => {
  const whole = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}

const receiveLarge = Effect.fnUntraced(function*(
  request: HttpServerRequest.HttpServerRequest,
  limit: number,
  seconds: number
): Effect.fn.Return<string, GatewayError, Scope.Scope> {
  const held = yield* holdBytes
  const chunks: Array<Uint8Array> = []
  let bytes = 0
  const arriving = Stream.mapError(request.stream, () => notReadable).pipe(
    Stream.timeoutOrElse({ duration: seconds * 1000, orElse: () => Stream.fail(tooSlow(seconds)) })
  )
  yield* Stream.runForEachArray(arriving, (arrived) => {
    let fits = true
    for (const chunk of arrived) {
      chunks.push(chunk)
      bytes += chunk.length
      fits = held.add(chunk.length)
    }
    if (bytes > limit) return Effect.fail(tooLarge(limit))
    return fits ? Effect.void : Effect.fail(tooMuchHeld)
  })
  return new TextDecoder().decode(concat(chunks, bytes))
})

const smallBodySize = ByteSize.bytes(smallBody)

/**
 * The text of a body of at most `bytes` bytes, or of `body_bytes` where that is less. Fails with 413, with 408 after
 * `body_seconds` of silence (a body of up to 64 KiB has that long in all), with 429 where too much is held for others.
 */
export const receiveBody = Effect.fnUntraced(function*(
  request: HttpServerRequest.HttpServerRequest,
  bytes: number | undefined
): Effect.fn.Return<string, GatewayError, Scope.Scope> {
  // A web request without a body has no stream that could be read.
  if (request.source instanceof Request && request.source.body === null) return ""
  const { body_bytes, body_seconds } = (yield* CurrentLimits)()
  const limit = Math.min(bytes ?? body_bytes, body_bytes)
  const declared = Number(request.headers["content-length"])
  if (declared > limit) return yield* tooLarge(limit)
  if (!(declared <= smallBody)) return yield* receiveLarge(request, limit, body_seconds)
  return yield* request.text.pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, smallBodySize),
    Effect.mapError(() => notReadable),
    Effect.timeoutOrElse({ duration: body_seconds * 1000, orElse: () => Effect.fail(tooSlow(body_seconds)) })
  )
})
