/**
 * Streams of pure machines: `transduce` runs a machine over a stream, once per chunk.
 *
 * V8 pretenures function literals that are assigned to properties: it allocates them among the old objects, where everything that they
 * reference stays until the next full collection. `Channel.fromTransform`, on which every stream is built, assigns one, which would
 * keep 10 kB per request. So streams of a single request are built by `once` and `fromPullOnce`, whose function references only a box
 * that is emptied when the stream starts.
 */
import { isArrayNonEmpty, type NonEmptyReadonlyArray } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import type { Machine } from "./transducer.ts"

/** Holds a value until it is taken, once. */
class Box<A> {
  private value: A | undefined

  constructor(value: A) {
    this.value = value
  }

  readonly take = (): A => {
    const { value } = this
    if (value === undefined) throw new Error("A stream for a single reader was run twice")
    this.value = undefined
    return value
  }
}

/** The transducer that starts this machine, for a stream that runs once. */
export const once = <M>(machine: M): () => M => new Box(machine).take

/** A stream that runs a pull, for a single reader. */
export const fromPullOnce = <A, E>(
  pull: Pull.Pull<NonEmptyReadonlyArray<A>, E>
): Stream.Stream<A, Pull.ExcludeDone<E>> => {
  const box = new Box(pull)
  return Stream.fromChannel(Channel.fromTransform(() => Effect.succeed(box.take())))
}

/** Runs a machine over the chunks of a pull and over its end. */
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
  // A pull that has ended ends again. Only a machine that may be done before its input must check `isOver` at each pull.
  return isDone === never ? read : Effect.suspend(() => isOver ? Cause.done() : read)
}

const never = () => false

/**
 * Runs a transducer over a stream, chunk by chunk. The outputs of a chunk are one chunk; the held output comes at the end. When `isDone`
 * holds after a chunk, the stream ends and reads no more. `isDone` must be a function of a module, since V8 keeps what it references.
 */
export const transduce = <I, O, M extends Machine<I, O> = Machine<I, O>>(
  start: () => M & Machine<I, O>,
  isDone: (machine: M) => boolean = never
) =>
<E, R>(self: Stream.Stream<I, E, R>): Stream.Stream<O, E, R> =>
  Stream.transformPull(self, (pull) => Effect.succeed(through<M & Machine<I, O>, I, O, E>(start(), pull, isDone)))
