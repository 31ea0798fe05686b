/**
 * Generated cuts: one text divided in the ways that a network can deliver it.
 */
import * as fc from "fast-check"

/** Cuts a text at the given positions. */
export const cutAt = (text: string, positions: ReadonlyArray<number>): ReadonlyArray<string> => {
  const sorted = [...new Set(positions.filter((at) => at > 0 && at < text.length))].toSorted((a, b) => a - b)
  const pieces: Array<string> = []
  let from = 0
  for (const at of [...sorted, text.length]) {
    pieces.push(text.slice(from, at))
    from = at
  }
  return pieces
}

/** Arbitrary cuts of a text, independent of its contents. */
export const cutsOf = (text: string): fc.Arbitrary<ReadonlyArray<string>> =>
  fc.array(fc.nat({ max: Math.max(0, text.length) }), { maxLength: 12 }).map((positions) => cutAt(text, positions))
