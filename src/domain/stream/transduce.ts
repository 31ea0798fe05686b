/**
 * Streams of pure machines: `transduce` runs a machine over a stream, once per chunk.
 *
 * V8 allocates a function that is assigned to a property among the old objects at once, and `Channel.fromTransform`, of which
 * every stream is made, assigns one: whatever that function reaches stays in memory until the next full collection, 10 kB of
 * each request. So a stream that is made for one request is made by `once` and `fromPullOnce`: what the function reaches is a
 * box, which is emptied when the stream starts.
 */
import { isArrayNonEmpty, type NonEmptyReadonlyArray } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import type { Machine } from "./transducer.ts"

/** Holds a value until it is taken. */
class Box<A> {
  private value: A | undefined

  constructor(value: A) {
    this.value = value
  }

  readonly take = (): A => {
    const { value } = this
    if (value === undefined) throw new Error("A stream that is made for one reader was run twice")
    this.value = undefined
    return value
  }
}

/** The transducer of one stream that is run once: starts this very machine. */
export const once = <M>(machine: M): () => M => new Box(machine).take

/** A stream of a pull, for one reader. */
export const fromPullOnce = <A, E>(
  pull: Pull.Pull<NonEmptyReadonlyArray<A>, E>
): Stream.Stream<A, Pull.ExcludeDone<E>> => {
  const box = new Box(pull)
  return Stream.fromChannel(Channel.fromTransform(() => Effect.succeed(box.take())))
}

/** What a machine makes of each chunk of a pull, and of its end. */
const through = <M extends Machine<I, O>, I, O, E>(
  machine: M,
  pull: Pull.Pull<NonEmptyReadonlyArray<I>, E>,
  isDone: (machine: M) => boolean
): Pull.Pull<NonEmptyReadonlyArray<O>, E> => {
  let isOver = false
  const read: Pull.Pull<NonEmptyReadonlyArray<O>, E> = Effect.matchCauseEffect(pull, {
    onSuccess: (inputs) => {
      const out: Array<O> = []
      for (let i = 0; i < inputs.length; i++) machine.push(inputs[i]!, out)
      isOver = isDone(machine)
      return isArrayNonEmpty(out) ? Effect.succeed(out) : isOver ? Cause.done() : read
    },
    onFailure: (cause) => {
      if (!Pull.isDoneCause(cause) || isOver) return Effect.failCause(cause)
      isOver = true
      const out: Array<O> = []
      machine.end(out)
      return isArrayNonEmpty(out) ? Effect.succeed(out) : Effect.failCause(cause)
    }
  })
  // A stream that has ended says so again: only a machine that is done before its input needs a look at each pull.
  return isDone === never ? read : Effect.suspend(() => isOver ? Cause.done() : read)
}

const never = () => false

/**
 * Runs a transducer over a stream, chunk by chunk: what is decided of a chunk is emitted with it, and what is still held
 * when the stream ends comes last. Where `isDone` holds after a chunk the stream ends there, and no more is read. (It must be
 * a function of a module: what it reaches is kept like what the stream reaches.)
 */
export const transduce = <I, O, M extends Machine<I, O> = Machine<I, O>>(
  start: () => M & Machine<I, O>,
  isDone: (machine: M) => boolean = never
) =>
<E, R>(self: Stream.Stream<I, E, R>): Stream.Stream<O, E, R> =>
  Stream.transformPull(self, (pull) => Effect.succeed(through<M & Machine<I, O>, I, O, E>(start(), pull, isDone)))
