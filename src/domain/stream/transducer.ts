/**
 * Pure stream transducers: everything between the upstream's bytes and the client's bytes is one of these.
 *
 * A transducer is started once per stream and then fed; what it emits depends on nothing but what it was fed. Its state is
 * its own, so stepping costs no allocation beyond the outputs. Machines are composed once and run once per network chunk.
 */

/** A started transducer: one stream's state. `push` and `end` append what comes out to `out`, in order; they never throw. */
export interface Machine<in I, in out O> {
  /** Takes one input and appends the outputs that it decides. */
  readonly push: (input: I, out: Array<O>) => void
  /** Says that no input follows; appends all that was held. Called at most once, and nothing is pushed afterwards. */
  readonly end: (out: Array<O>) => void
}

/** A machine that says how many characters of its input it holds. */
export interface HoldingMachine<in I, in out O> extends Machine<I, O> {
  readonly held: number
}

/** A transducer: starts a fresh machine for one stream. */
export type Transducer<in I, in out O> = () => Machine<I, O>

/**
 * Empties an array that is filled again at once. Mostly it holds one output, and taking that costs a fraction of what setting
 * the length does.
 */
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

/** Feeds what `first` emits into `second`. One intermediate array is reused for the life of the stream. */
export const compose = <A, B, C>(first: Transducer<A, B>, second: Transducer<B, C>): Transducer<A, C> => () =>
  new Composed(first(), second())

/** Runs a transducer over a whole input; the reference that a streamed run must equal. */
export const run = <I, O>(transducer: Transducer<I, O>, inputs: Iterable<I>): Array<O> => {
  const machine = transducer()
  const out: Array<O> = []
  for (const input of inputs) machine.push(input, out)
  machine.end(out)
  return out
}
