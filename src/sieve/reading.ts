/**
 * How forms read: as generators over a `Source`, which run ahead as far as the text goes and wait where it ends.
 *
 * A generator that needs the next character waits with a bare `yield`; for a long stretch it yields a `Reader`, which the
 * sieve then feeds directly, so that what arrives inside a value costs no walk through the generators.
 */
import { isBlank } from "../domain/stream/characters.ts"

/** The piece of the reply at hand. Nothing before `pos` is looked at again. */
export interface Source {
  text: string
  pos: number
  /** The first index that may not be read: the end of the piece, or where the bound of an undecided form is reached. */
  stop: number
  /** No text follows. */
  ended: boolean
}

/** Reads one long stretch; true when it is complete, or when the reply ended. */
export interface Reader {
  readonly read: (source: Source) => boolean
}

/** A part of a form's reading with the result `A`. */
export type Reading<A> = Generator<Reader | undefined, A, void>

/** What `peek` gives at the end of the reply. */
export const END = -1

/** The next character's code, not taken. */
export function* peek(source: Source): Reading<number> {
  while (source.pos === source.stop) {
    if (source.ended) return END
    yield
  }
  return source.text.charCodeAt(source.pos)
}

/** Takes blanks and gives the code of the character after them, not taken. */
export function* skipBlanks(source: Source): Reading<number> {
  for (;;) {
    const c = source.pos < source.stop ? source.text.charCodeAt(source.pos) : yield* peek(source)
    if (!isBlank(c)) return c
    source.pos++
  }
}

/** Takes `literal` if it stands there; where it does not, what agreed with it has been taken. */
export function* takeLiteral(source: Source, literal: string): Reading<boolean> {
  for (let i = 0; i < literal.length; i++) {
    const c = source.pos < source.stop ? source.text.charCodeAt(source.pos) : yield* peek(source)
    if (c !== literal.charCodeAt(i)) return false
    source.pos++
  }
  return true
}

/** Takes the text before the first character that `ends` it, or that ends the reply. */
export function* takeUntil(source: Source, ends: (c: number) => boolean): Reading<string> {
  let taken = ""
  for (;;) {
    const start = source.pos
    while (source.pos < source.stop && !ends(source.text.charCodeAt(source.pos))) source.pos++
    taken += source.text.slice(start, source.pos)
    if (source.pos < source.stop || (yield* peek(source)) === END) return taken
  }
}

/** Feeds a reader until it is complete. */
export function* readWith<R extends Reader>(reader: R): Reading<R> {
  yield reader
  return reader
}
