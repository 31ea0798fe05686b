/**
 * Large replies: refused where they do not fit into what all requests may hold, and sent one in each turn of the event loop, so
 * that many of them at once keep no small reply waiting.
 *
 * What waits for its turn counts, so `limits.buffered_bytes` bounds it.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import { Turns } from "../config/clock/cooperative.ts"
import { CurrentBufferedBytes, CurrentLimits } from "../config/limits.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { tooMuchHeld } from "./receiveBody.ts"

/** Bytes of a reply that takes a turn: to encode and to send it takes milliseconds. */
export const largeReply = 256 * 1024

/** The event loop is the process's: so is the order. */
const turns = new Turns(1)

/** Whether a reply of so many bytes may be held. One that may not is noted, so that room is made. */
export const hasRoom = (fiber: Fiber.Fiber<unknown, unknown>, bytes: number): boolean => {
  const sum = fiber.getRef(CurrentBufferedBytes)
  if (sum.used + bytes <= fiber.getRef(CurrentLimits)().buffered_bytes) return true
  sum.refused = Math.max(sum.refused ?? 0, bytes)
  return false
}

/** Waits for the turn of a reply; it holds so many bytes meanwhile. */
export const inTurn = (bytes: number): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const sum = fiber.getRef(CurrentBufferedBytes)
    return Effect.callback((resume) => {
      sum.used += bytes
      const serve = () => {
        sum.used -= bytes
        resume(Effect.void)
      }
      turns.join(serve)
      return Effect.sync(() => {
        sum.used -= bytes
        turns.leave(serve)
      })
    })
  })

/** Waits until a reply of so many bytes may be made. Fails with `rate_limit_exceeded` where it does not fit. */
export const beforeReply = (bytes: number): Effect.Effect<void, GatewayError> =>
  Effect.withFiber((fiber) => {
    if (!hasRoom(fiber, bytes)) return Effect.fail(tooMuchHeld)
    return bytes < largeReply
      ? Effect.void
      // What it is made of is held anyway.
      : Effect.flatMap(inTurn(0), () => hasRoom(fiber, bytes) ? Effect.void : Effect.fail(tooMuchHeld))
  })
