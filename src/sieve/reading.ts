/**
 * How forms parse: as generators over a `Source`. A generator runs as far as the text goes and waits where it ends.
 *
 * A bare `yield` waits for the next character. For a long value a generator yields a `Reader`, which the engine then feeds directly, so
 * that text inside a value does not pass through the stack of generators.
 */
import { isBlank, isSpace } from "../domain/stream/characters.ts"

/** The piece of the reply at hand. Text before `pos` is not looked at again. */
export interface Source {
  text: string
  pos: number
  /** The first index that may not be read: the end of the piece, or the bound of an undecided form. */
  stop: number
  /** The reply ends at `stop`. */
  ended: boolean
}

/** Reads one long value; returns true when the value is complete or the reply ended. */
export interface Reader {
  readonly read: (source: Source) => boolean
}

/** A part of a form's parse, with the result `A`. */
export type Reading<A> = Generator<Reader | undefined, A, void>

/** What `peek` returns at the end of the reply. */
export const END = -1

/** Returns the next character's code without taking it. */
export function* peek(source: Source): Reading<number> {
  while (source.pos === source.stop) {
    if (source.ended) return END
    yield
  }
  return source.text.charCodeAt(source.pos)
}

/** Takes blanks and returns the code of the character behind them without taking it. */
export function* skipBlanks(source: Source): Reading<number> {
  for (;;) {
    const c = source.pos < source.stop ? source.text.charCodeAt(source.pos) : yield* peek(source)
    if (!isBlank(c)) return c
    source.pos++
  }
}

/** Takes the blanks within a line and returns the code of the character behind them without taking it. */
export function* skipSpaces(source: Source): Reading<number> {
  for (;;) {
    const c = yield* peek(source)
    if (!isSpace(c)) return c
    source.pos++
  }
}

/** Takes `literal` and returns true; at the first character that differs it stops, having taken what agreed, and returns false. */
export function* takeLiteral(source: Source, literal: string): Reading<boolean> {
  for (let i = 0; i < literal.length; i++) {
    const c = source.pos < source.stop ? source.text.charCodeAt(source.pos) : yield* peek(source)
    if (c !== literal.charCodeAt(i)) return false
    source.pos++
  }
  return true
}

/** Takes and returns the text before the first character for which `ends` holds, or before the end of the reply. */
export function* takeUntil(source: Source, ends: (c: number) => boolean): Reading<string> {
  let taken = ""
  for (;;) {
    const start = source.pos
    while (source.pos < source.stop && !ends(source.text.charCodeAt(source.pos))) source.pos++
    taken += source.text.slice(start, source.pos)
    if (source.pos < source.stop || (yield* peek(source)) === END) return taken
  }
}

/** Feeds a reader until it is complete, and returns it. */
export function* readWith<R extends Reader>(reader: R): Reading<R> {
  yield reader
  return reader
}
