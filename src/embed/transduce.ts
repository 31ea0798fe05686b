/**
 * Pure transducers as operators on streams.
 */
import * as Stream from "effect/Stream"
import type { Machine, Transducer } from "../stream/transducer.ts"

/**
 * Runs a transducer over a stream, chunk by chunk: what is decided of a chunk is emitted with it, and what is still held
 * when the stream ends comes last.
 */
export const transduce =
  <I, O>(transducer: Transducer<I, O>) => <E, R>(self: Stream.Stream<I, E, R>): Stream.Stream<O, E, R> =>
    Stream.mapAccumArray(
      self,
      transducer,
      (machine: Machine<I, O>, inputs) => {
        const out: Array<O> = []
        for (let i = 0; i < inputs.length; i++) machine.push(inputs[i]!, out)
        return [machine, out]
      },
      {
        onHalt: (machine) => {
          const out: Array<O> = []
          machine.end(out)
          return out
        }
      }
    )
