/**
 * Long work in slices, so that no loop holds up everybody else: a generator that yields where a slice is full. What runs it
 * decides what happens there: `inSlices` (floor 1) lets other tasks run, `atOnce` goes on.
 */

/** What one slice handled. */
export interface SliceSize {
  readonly items: number
  readonly chars: number
}

/** Work that yields between its slices. */
export type Sliced<A> = Generator<SliceSize, A, undefined>

/** Counts the items and characters of a slice. */
export class Slice {
  #items = 0
  #chars = 0

  /** Adds what was handled; true when the slice is full, and `end` is to be yielded. */
  add(items: number, chars = 0): boolean {
    this.#items += items
    this.#chars += chars
    return this.#items >= sliceItems || this.#chars >= sliceChars
  }

  /** The size of the slice, which starts the next one. */
  end(): SliceSize {
    const size = { items: this.#items, chars: this.#chars }
    this.#items = 0
    this.#chars = 0
    return size
  }
}

/** Runs `f` over `items` in order, in slices. `f` may return the characters that it handled. */
export function* eachSliced<A>(
  items: Iterable<A>,
  f: (item: A, index: number) => number | void,
  slice = new Slice()
): Sliced<void> {
  let index = 0
  for (const item of items) {
    if (slice.add(1, f(item, index++) ?? 0)) yield slice.end()
  }
}

/** `items.filter(is)`, counted into `slice`. */
export function* filterSliced<A, B extends A>(
  slice: Slice,
  items: ReadonlyArray<A>,
  is: (item: A) => item is B
): Sliced<Array<B>> {
  const out: Array<B> = []
  for (const item of items) {
    if (slice.add(1)) yield slice.end()
    if (is(item)) out.push(item)
  }
  return out
}

/** `items.map(f)`, counted into `slice`. */
export function* mapSliced<A, B>(
  slice: Slice,
  items: ReadonlyArray<A>,
  f: (item: A, index: number) => B
): Sliced<Array<B>> {
  const out: Array<B> = []
  for (let i = 0; i < items.length; i++) {
    if (slice.add(1)) yield slice.end()
    out.push(f(items[i]!, i))
  }
  return out
}

/** `items.flatMap(f)`, counted into `slice`. */
export function* flatMapSliced<A, B>(
  slice: Slice,
  items: ReadonlyArray<A>,
  f: (item: A, index: number) => ReadonlyArray<B> | Sliced<ReadonlyArray<B>>
): Sliced<Array<B>> {
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

/** Runs sliced work to its end at once, for what is known to be short. */
export const atOnce = <A>(work: Sliced<A>): A => {
  for (;;) {
    const next = work.next()
    if (next.done === true) return next.value
  }
}

/** Characters of a long text that are worked on in one go: a slice's, unless more pieces are in it. */
export const pieceChars = 64 * 1024

/** Work done so far. */
export interface Meter {
  /** Items and characters looked at. */
  steps: number
}

/** Items that a loop may handle between two yields of the event loop. */
export const sliceItems = 2000

/** Characters that a loop may handle between two yields of the event loop. */
export const sliceChars = 256 * 1024
