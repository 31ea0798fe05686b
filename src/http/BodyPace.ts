/**
 * How fast a request body must arrive: its next bytes within `body_seconds`, after its first `body_seconds` at `body_bytes_per_second` on
 * average, and all of it within `body_total_seconds`. Only the time for which the gateway waits for the client counts.
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Stream from "effect/Stream"
import { type GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import type { Limits } from "../domain/limits.ts"
import { monotonicMillis } from "../domain/time.ts"

/** The error for a body whose connection broke. */
export const notReadable = invalidRequest("The request body could not be read")

type PaceLimits = Pick<Limits, "body_bytes_per_second" | "body_seconds" | "body_total_seconds">

export class BodyPace {
  private readonly limits: PaceLimits
  private bytes = 0
  /** Milliseconds. */
  private waited = 0

  constructor(limits: PaceLimits) {
    this.limits = limits
  }

  /** Bytes came after so many milliseconds. */
  arrived(bytes: number, millis: number): void {
    this.bytes += bytes
    this.waited += millis
  }

  /** Milliseconds in which the next bytes must come. */
  get patience(): number {
    const { body_seconds } = this.limits
    return Math.max(0, Math.min(body_seconds * 1000, this.untilTooSlow, this.untilTooLate))
  }

  /** The error for bytes that did not come within `patience`. It names the limit. */
  get fault(): GatewayError {
    const { body_bytes_per_second, body_seconds, body_total_seconds } = this.limits
    const { patience } = this
    const [message, setting] = patience === body_seconds * 1000
      ? [`The request body did not arrive: nothing came for ${body_seconds} seconds`, "limits.body_seconds"]
      : this.untilTooLate <= patience
      ? [`The request body did not arrive within ${body_total_seconds} seconds`, "limits.body_total_seconds"]
      : [
        `The request body arrived with less than ${body_bytes_per_second} bytes a second`,
        "limits.body_bytes_per_second"
      ]
    return gatewayError("request_timeout", message, { cause: { setting } })
  }

  private get untilTooSlow(): number {
    const { body_bytes_per_second, body_seconds } = this.limits
    return (body_seconds + this.bytes / body_bytes_per_second) * 1000 - this.waited
  }

  private get untilTooLate(): number {
    return this.limits.body_total_seconds * 1000 - this.waited
  }
}

/** The bytes of a body. Fails with 408 if they come too slowly, with 400 if its connection breaks. */
export const pacedBody = (
  request: HttpServerRequest.HttpServerRequest,
  limits: PaceLimits
): Stream.Stream<Uint8Array, GatewayError> =>
  Stream.transformPull(
    Stream.mapError(request.stream, () => notReadable),
    (pull) =>
      Effect.map(Clock.Clock, (clock) => {
        const pace = new BodyPace(limits)
        return Effect.suspend(() => {
          const since = monotonicMillis(clock)
          return Effect.map(
            Effect.timeoutOrElse(pull, { duration: pace.patience, orElse: () => Effect.fail(pace.fault) }),
            (chunks) => {
              pace.arrived(chunks.reduce((sum, { length }) => sum + length, 0), monotonicMillis(clock) - since)
              return chunks
            }
          )
        })
      })
  )
