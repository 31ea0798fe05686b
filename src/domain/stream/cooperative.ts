/**
 * Long work in slices, so that no loop blocks the event loop: a generator that yields whenever a slice is full. At a yield, `runCooperatively`
 * (in `config`) lets other tasks run; `runSync` continues.
 */

/** The size of a finished slice. */
export interface SliceSize {
  readonly items: number
  readonly chars: number
}

/** Work that yields between its slices. */
export type Cooperative<A> = Generator<SliceSize, A, undefined>

/** Counts the items and characters of a slice. */
export class Slice {
  #items = 0
  #chars = 0

  /** Adds work; returns true when the slice is full and `end` must be yielded. */
  add(items: number, chars = 0): boolean {
    this.#items += items
    this.#chars += chars
    return this.#items >= sliceItems || this.#chars >= sliceChars
  }

  /** Ends the slice: returns its size and starts the next one. */
  end(): SliceSize {
    const size = { items: this.#items, chars: this.#chars }
    this.#items = 0
    this.#chars = 0
    return size
  }
}

/** Runs `f` over `items` in order, in slices. `f` may return the number of characters that it handled. */
export function* eachCooperatively<A>(
  items: Iterable<A>,
  f: (item: A, index: number) => number | void,
  slice = new Slice()
): Cooperative<void> {
  let index = 0
  for (const item of items) {
    if (slice.add(1, f(item, index++) ?? 0)) yield slice.end()
  }
}

/** `items.filter(is)`, counted into `slice`. */
export function* filterCooperatively<A, B extends A>(
  slice: Slice,
  items: ReadonlyArray<A>,
  is: (item: A) => item is B
): Cooperative<Array<B>> {
  const out: Array<B> = []
  for (const item of items) {
    if (slice.add(1)) yield slice.end()
    if (is(item)) out.push(item)
  }
  return out
}

/** `items.map(f)`, counted into `slice`. */
export function* mapCooperatively<A, B>(
  slice: Slice,
  items: ReadonlyArray<A>,
  f: (item: A, index: number) => B
): Cooperative<Array<B>> {
  const out: Array<B> = []
  for (let i = 0; i < items.length; i++) {
    if (slice.add(1)) yield slice.end()
    out.push(f(items[i]!, i))
  }
  return out
}

/** `items.flatMap(f)`, counted into `slice`. */
export function* flatMapCooperatively<A, B>(
  slice: Slice,
  items: ReadonlyArray<A>,
  f: (item: A, index: number) => ReadonlyArray<B> | Cooperative<ReadonlyArray<B>>
): Cooperative<Array<B>> {
  const out: Array<B> = []
  for (let i = 0; i < items.length; i++) {
    if (slice.add(1)) yield slice.end()
    const made = f(items[i]!, i)
    for (const each of "next" in made ? yield* made : made) {
      if (slice.add(1)) yield slice.end()
      out.push(each)
    }
  }
  return out
}

/** Runs sliced work without pauses, for work that is known to be short. */
export const runSync = <A>(work: Cooperative<A>): A => {
  for (;;) {
    const next = work.next()
    if (next.done === true) return next.value
  }
}

/** The size in which long texts are worked on: a quarter of a slice. */
export const pieceChars = 64 * 1024

/**
 * Counts work. Machines and builders that promise linear cost count their steps into a meter if they get one. Tests hold the sum to a
 * constant times input and output; in production no meter is passed.
 */
export interface Meter {
  /** The items and characters that were looked at. */
  steps: number
}

/** The most items that a loop handles between two yields to the event loop. */
export const sliceItems = 2000

/** The most characters that a loop handles between two yields to the event loop. */
export const sliceChars = 256 * 1024
