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
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FailingMachine } from "./transducer.ts"

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

const pullBox: unique symbol = Symbol("model-gateway/domain/pullBox")

/** A pull of chunks. */
export type ChunkPull<A, E> = Pull.Pull<NonEmptyReadonlyArray<A>, E>

/** A stream for a single reader. */
interface OnceStream<A, E> extends Stream.Stream<A, E> {
  readonly [pullBox]: Box<ChunkPull<A, E>>
}

const isOnce = <A, E, R>(stream: Stream.Stream<A, E, R>): stream is OnceStream<A, E> => pullBox in stream

/** A stream that runs a pull, for a single reader. */
export const fromPullOnce = <A, E>(pull: ChunkPull<A, E>): Stream.Stream<A, Pull.ExcludeDone<E>> => {
  const box = new Box(pull)
  return Object.assign(Stream.fromChannel(Channel.fromTransform(() => Effect.succeed(box.take()))), { [pullBox]: box })
}

/** The pull of a stream that was made by `fromPullOnce`. */
export const takePullUnsafe = <A, E>(stream: Stream.Stream<A, E>): ChunkPull<A, E> =>
  (stream as OnceStream<A, E>)[pullBox].take()

/** Starts a stream in a scope. A stream for a single reader gives its pull without a step of Effect. */
export const pullOf = <A, E>(
  stream: Stream.Stream<A, E>,
  scope: Scope.Scope
): Effect.Effect<ChunkPull<A, E>> =>
  isOnce(stream) ? Effect.succeed(stream[pullBox].take()) : Channel.toPullScoped(Stream.toChannel(stream), scope)

/**
 * A stream that is made of another one's pull. Over a stream for a single reader it is one itself: it takes the pull now, so that the whole way
 * from the upstream to the client starts in one step.
 */
export const mapPull =
  <A, E, B, E2>(f: (pull: ChunkPull<A, E>) => ChunkPull<B, E2>) =>
  <R>(self: Stream.Stream<A, E, R>): Stream.Stream<B, Pull.ExcludeDone<E2>, R> =>
    isOnce(self)
      ? fromPullOnce(f(self[pullBox].take()))
      : Stream.transformPull(self, (pull) => Effect.succeed(f(pull)))

/** Starts a stream in a scope and takes its first chunk. Returns it with the stream of those that follow. An empty stream ends. */
export const peel = <A, E>(
  self: Stream.Stream<A, E>,
  scope: Scope.Scope
): Effect.Effect<readonly [NonEmptyReadonlyArray<A>, Stream.Stream<A, E>], E | Cause.Done> =>
  Effect.flatMapEager(pullOf(self, scope), (pull) => Effect.map(pull, (first) => [first, fromPullOnce(pull)] as const))

/** The stream of a chunk that was taken, followed by the pull that it was taken from, for a single reader. */
export const putBack = <A, E>(
  chunk: NonEmptyReadonlyArray<A>,
  pull: ChunkPull<A, E>
): Stream.Stream<A, Pull.ExcludeDone<E>> => {
  let unread: NonEmptyReadonlyArray<A> | undefined = chunk
  return fromPullOnce(Effect.suspend(() => {
    if (unread === undefined) return pull
    const first = unread
    unread = undefined
    return Effect.succeed(first)
  }))
}

/**
 * Runs a machine over the chunks of a pull and over its end. `over` continues after the end or a failure, which by default is the result.
 * The returned function has to be called for each chunk if the machine may be done before its input, or fail: it asks the machine.
 */
export const through = <M extends FailingMachine<I, O, F>, I, O, E, F>(
  machine: M,
  pull: ChunkPull<I, E>,
  isDone: (machine: M) => boolean,
  over: (end: Cause.Cause<E | F | Cause.Done>) => ChunkPull<O, E | F> = Effect.failCause
): () => ChunkPull<O, E | F> => {
  let isOver = false
  const next = (): ChunkPull<O, E | F> => {
    const failure = machine.failure?.()
    return failure !== undefined ? over(Cause.fail(failure)) : isOver ? over(doneCause) : read
  }
  const emit = (out: Array<O>) => isArrayNonEmpty(out) ? Effect.succeed(out) : next()
  const end = (out: Array<O>) => {
    isOver = true
    machine.end(out)
    return emit(out)
  }
  const read: ChunkPull<O, E | F> = Effect.matchCauseEffect(pull, {
    onSuccess: (inputs) => {
      const out: Array<O> = []
      for (let i = 0; i < inputs.length; i++) machine.push(inputs[i]!, out)
      return isDone(machine) ? end(out) : emit(out)
    },
    onFailure: (cause) => !Pull.isDoneCause(cause) || isOver ? over(cause) : end([])
  })
  return next
}

const doneCause = Cause.fail(Cause.Done())

const never = () => false

/**
 * Runs a transducer over a stream, chunk by chunk. The outputs of a chunk are one chunk; the held output comes at the end. When `isDone`
 * holds after a chunk, that is the end, and the stream reads no more. `isDone` must be a function of a module, since V8 keeps what it
 * references.
 */
export const transduce = <I, O, F = never, M extends FailingMachine<I, O, F> = FailingMachine<I, O, F>>(
  start: () => M & FailingMachine<I, O, F>,
  isDone: (machine: M) => boolean = never
) =>
<E, R>(self: Stream.Stream<I, E, R>): Stream.Stream<O, E | F, R> =>
  mapPull<I, E, O, E | F>((pull) => {
    const machine = start()
    const next = through<M & FailingMachine<I, O, F>, I, O, E, F>(machine, pull, isDone)
    // A pull that has ended ends again.
    return isDone === never && machine.failure === undefined ? next() : Effect.suspend(next)
  })(self)
