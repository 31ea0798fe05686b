/** The decoder of an exchange's body as a stage of its stream. */
import type * as Cause from "effect/Cause"
import type * as Stream from "effect/Stream"
import { type ChunkPull, once, takePullUnsafe, through, transduce } from "../domain/stream/transduce.ts"
import type { FailingMachine } from "../domain/stream/transducer.ts"
import type { UpstreamFailure } from "../domain/UpstreamFailure.ts"
import type { Exchange } from "./Exchange.ts"

/** A decoder of a whole body, from network chunks to values. Values decoded before its failure are still valid. */
export interface BodyDecoder<A> extends FailingMachine<Uint8Array, A, UpstreamFailure> {
  readonly failure: () => UpstreamFailure | undefined
  /** The decoder needs nothing more of the body. */
  readonly done: () => boolean
}

class Decoding<A> implements FailingMachine<Uint8Array, A, UpstreamFailure> {
  private readonly exchange: Exchange
  private readonly decoder: BodyDecoder<A>

  constructor(exchange: Exchange, decoder: BodyDecoder<A>) {
    this.exchange = exchange
    this.decoder = decoder
  }

  /** A body that ends with the last bytes ends with their values. */
  get isDone(): boolean {
    const { decoder, exchange } = this
    return decoder.done() || (exchange.isRead && decoder.failure() === undefined)
  }

  push(bytes: Uint8Array, out: Array<A>): void {
    this.decoder.push(bytes, out)
  }

  end(out: Array<A>): void {
    this.decoder.end(out)
  }

  failure(): UpstreamFailure | undefined {
    return this.decoder.failure()
  }
}

const isDone = <A>(decoding: Decoding<A>): boolean => decoding.isDone

/**
 * Decodes one of several bodies. `over` continues after its end, or after a failure of the decoder or of the exchange. The returned function
 * has to be called again for each chunk.
 */
export const decodeRound = <A>(
  exchange: Exchange,
  decoder: BodyDecoder<A>,
  over: (end: Cause.Cause<UpstreamFailure | Cause.Done>) => ChunkPull<A, UpstreamFailure>
): () => ChunkPull<A, UpstreamFailure> =>
  through(new Decoding(exchange, decoder), takePullUnsafe(exchange.bytes), isDone, over)

/** The decoded values of a body, for a single reader. */
export const decodeBody = <A>(exchange: Exchange, decoder: BodyDecoder<A>): Stream.Stream<A, UpstreamFailure> =>
  transduce<Uint8Array, A, UpstreamFailure, Decoding<A>>(once(new Decoding(exchange, decoder)), isDone)(exchange.bytes)
