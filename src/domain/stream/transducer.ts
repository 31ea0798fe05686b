/**
 * Pure stream transducers, which do everything between the upstream's bytes and the client's bytes.
 *
 * A transducer starts one machine per stream. A machine's outputs depend only on its inputs, and stepping allocates only the outputs.
 * Machines are composed once per stream and run once per network chunk.
 */

/** The state of one stream. `push` and `end` append outputs to `out`, in order. They never throw. */
export interface Machine<in I, in out O> {
  /** Takes one input and appends its outputs. */
  readonly push: (input: I, out: Array<O>) => void
  /** Ends the input and appends the held outputs. Called at most once, after the last `push`. */
  readonly end: (out: Array<O>) => void
}

/** A machine that may fail its stream. */
export interface FailingMachine<in I, in out O, out E = never> extends Machine<I, O> {
  /** The failure that follows the outputs. */
  readonly failure?: (() => E | undefined) | undefined
}

/** A machine that reports how many characters of its input it holds. */
export interface HoldingMachine<in I, in out O> extends Machine<I, O> {
  readonly held: number
}

/** Starts a new machine for one stream. */
export type Transducer<in I, in out O> = () => Machine<I, O>

/** Empties an array for reuse. It usually has one item, and `pop` is much cheaper than setting the length. */
export const clear = (items: Array<unknown>): void => {
  if (items.length === 1) items.pop()
  else if (items.length > 0) items.length = 0
}

class Composed<A, B, C> implements Machine<A, C> {
  private readonly head: Machine<A, B>
  private readonly tail: Machine<B, C>
  private readonly between: Array<B> = []

  constructor(head: Machine<A, B>, tail: Machine<B, C>) {
    this.head = head
    this.tail = tail
  }

  push(input: A, out: Array<C>): void {
    this.head.push(input, this.between)
    this.drain(out)
  }

  end(out: Array<C>): void {
    this.head.end(this.between)
    this.drain(out)
    this.tail.end(out)
  }

  private drain(out: Array<C>): void {
    const { between, tail } = this
    for (let i = 0; i < between.length; i++) tail.push(between[i]!, out)
    clear(between)
  }
}

/** Feeds the outputs of `first` into `second`. One intermediate array is reused for the whole stream. */
export const compose = <A, B, C>(first: Transducer<A, B>, second: Transducer<B, C>): Transducer<A, C> => () =>
  new Composed(first(), second())

/** Runs a transducer over a whole input. */
export const run = <I, O>(transducer: Transducer<I, O>, inputs: Iterable<I>): Array<O> => {
  const machine = transducer()
  const out: Array<O> = []
  for (const input of inputs) machine.push(input, out)
  machine.end(out)
  return out
}
