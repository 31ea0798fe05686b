/**
 * Runs a decoder over the body of an exchange: each read yields one array of decoded values.
 */
import { isArrayNonEmpty, type NonEmptyReadonlyArray } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import type { Machine } from "../domain/stream/transducer.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Exchange } from "./Exchange.ts"

/** A decoder of a whole body, from network chunks to values. */
export interface BodyDecoder<A> extends Machine<Uint8Array, A> {
  /** The failure of the body; values decoded before it are still valid. */
  readonly failure: () => UpstreamFailure | undefined
  /** The decoder needs nothing more of the body. */
  readonly done: () => boolean
  /** The reply is complete, so a connection that breaks now does no harm. */
  readonly complete: () => boolean
}

/** The decoded values of a body, read by read. */
export type DecodedBody<A> = Pull.Pull<NonEmptyReadonlyArray<A>, UpstreamFailure>

/** The end of a body: its regular end, or a failure of the decoder or of the exchange. */
export type BodyEnd = Cause.Cause<UpstreamFailure | Cause.Done>

/**
 * Runs a decoder over an exchange's body. `over` continues after the end of the body; by default the end is the result. The
 * returned function has to be called again for each read, because it checks the decoder when it is called.
 */
export const decodeBody = <A>(
  exchange: Exchange,
  decoder: BodyDecoder<A>,
  over: (end: BodyEnd) => DecodedBody<A> = Effect.failCause
): () => DecodedBody<A> => {
  let ended = false
  const emit = (out: Array<A>): DecodedBody<A> => isArrayNonEmpty(out) ? Effect.succeed(out) : next()
  const end = (out: Array<A>) => {
    ended = true
    decoder.end(out)
    return emit(out)
  }
  const read: DecodedBody<A> = exchange.read((bytes) => {
    if (bytes._tag === "Failure") {
      return decoder.complete() || Pull.isDoneCause(bytes.cause) ? end([]) : over(bytes.cause)
    }
    const out: Array<A> = []
    decoder.push(bytes.value, out)
    // A body that ends with these bytes ends with their events.
    const isOver = decoder.done() || (exchange.isRead && decoder.failure() === undefined)
    return isOver ? end(out) : emit(out)
  })
  const next = (): DecodedBody<A> => {
    const failure = decoder.failure()
    if (failure !== undefined) return over(Cause.fail(failure))
    return ended ? over(Cause.fail(Cause.Done())) : read
  }
  return next
}
