/**
 * The body of an exchange through a decoder: one array of what it decides for each read.
 */
import { isArrayNonEmpty, type NonEmptyReadonlyArray } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import type { Machine } from "../domain/stream/transducer.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Exchange } from "./Exchange.ts"

/** A decoder of a whole body: network chunks in, what they decide out. */
export interface BodyDecoder<A> extends Machine<Uint8Array, A> {
  /** What the body failed with; what was decoded before it still counts. */
  readonly failure: () => UpstreamFailure | undefined
  /** Nothing more is wanted of the body. */
  readonly done: () => boolean
  /** The body is as good as complete: a connection that breaks now does no harm. */
  readonly complete: () => boolean
}

/** What a decoder makes of a body, read by read. */
export type DecodedBody<A> = Pull.Pull<NonEmptyReadonlyArray<A>, UpstreamFailure>

/** How a body ended: read to its end, or by a failure of the decoder or of the exchange. */
export type BodyEnd = Cause.Cause<UpstreamFailure | Cause.Done>

/**
 * Runs a decoder over an exchange's body. `over` says what comes when the body has ended; by default that it has. To be asked
 * for each read anew, by whoever runs already: the function looks when it is called.
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
