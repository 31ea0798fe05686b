/**
 * Concurrency limits of work on the gateway's own processor: embeddings and token counts, and the encoding of large replies.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import { Turns } from "../config/clock/cooperative.ts"
import { CurrentBufferedBytes, CurrentLimits, holdBytes } from "../config/limits.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { tooMuchHeld } from "./receiveBody.ts"

/** Embeddings and token counts that run at the same time. */
export const mostAtWork = 64

/** Runs embeddings and token counts, `mostAtWork` at a time; others wait in order. */
export class WorkLimit extends Context.Service<WorkLimit, {
  readonly inTurn: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}>()("model-gateway/http/WorkLimit") {
  static readonly layer: Layer.Layer<WorkLimit> = Layer.effect(
    WorkLimit,
    Effect.map(Semaphore.make(mostAtWork), (turns) => WorkLimit.of({ inTurn: turns.withPermit }))
  )
}

/** Bytes from which a reply waits for its turn: encoding and sending it takes milliseconds. */
export const largeReply = 256 * 1024

/**
 * Large replies are sent one per turn of the event loop, so that small replies are not delayed. The event loop is shared by the
 * process, so the queue is too. `limits.buffered_bytes` bounds the queue.
 */
const turns = new Turns(1)

/** True if a reply of `bytes` bytes may be held. Records a refused size, so that room is made. */
export const hasRoom = (fiber: Fiber.Fiber<unknown, unknown>, bytes: number): boolean => {
  const sum = fiber.getRef(CurrentBufferedBytes)
  if (sum.used + bytes <= fiber.getRef(CurrentLimits)().buffered_bytes) return true
  sum.refused = Math.max(sum.refused ?? 0, bytes)
  return false
}

/** Waits for the turn of a reply; `bytes` count against `buffered_bytes` meanwhile. */
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

/** One large reply is made at a time. The processor is shared by the process, so the turn is too. */
const making = Semaphore.makeUnsafe(1)

/**
 * Makes a large reply, or the parts of one, of about `bytes` bytes. They count against `buffered_bytes` until the scope closes. Fails with
 * `rate_limit_exceeded` before the work if they exceed it; otherwise waits until no other large reply is made.
 */
export const makeLarge = <A, E, R>(
  bytes: number,
  make: Effect.Effect<A, E, R>
): Effect.Effect<A, E | GatewayError, R | Scope.Scope> =>
  Effect.withFiber((fiber): Effect.Effect<A, E | GatewayError, R | Scope.Scope> => {
    if (bytes < largeReply) return make
    if (!hasRoom(fiber, bytes)) return Effect.fail(tooMuchHeld)
    return Effect.flatMap(holdBytes, (held) => {
      held.add(bytes)
      return making.withPermit(make)
    })
  })

/** Waits until a reply of `bytes` bytes may be made. Fails with `rate_limit_exceeded` if it exceeds `buffered_bytes`. */
export const beforeReply = (bytes: number): Effect.Effect<void, GatewayError> =>
  Effect.withFiber((fiber) => {
    if (!hasRoom(fiber, bytes)) return Effect.fail(tooMuchHeld)
    return bytes < largeReply
      ? Effect.void
      // The source of the reply is counted already.
      : Effect.flatMap(inTurn(0), () => hasRoom(fiber, bytes) ? Effect.void : Effect.fail(tooMuchHeld))
  })
