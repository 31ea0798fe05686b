/**
 * The names that a misspelt one was probably meant to be.
 */

/** Longer names than this are not compared: a slip of the pen is found in short ones. */
const longestName = 64

/** Names that are compared at most, so that the work is bounded whatever is configured. */
const mostCandidates = 1_000

/** Letters to add, leave out, replace or swap with their neighbour, from one name to the other; at most `most + 1`. */
const distance = (from: string, to: string, most: number): number => {
  if (Math.abs(from.length - to.length) > most) return most + 1
  let before: Array<number> = []
  let last = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let row = 1; row <= from.length; row++) {
    const line = [row]
    for (let column = 1; column <= to.length; column++) {
      const same = from[row - 1] === to[column - 1]
      let least = Math.min(last[column]! + 1, line[column - 1]! + 1, last[column - 1]! + (same ? 0 : 1))
      if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]) {
        least = Math.min(least, before[column - 2]! + 1)
      }
      line.push(least)
    }
    before = last
    last = line
  }
  return last[to.length]!
}

/**
 * Up to `count` of the candidates that `name` may be a misspelling of, the nearest first; case does not matter. A third of
 * the letters may differ.
 */
export const nearest = (name: string, candidates: Iterable<string>, count = 1): ReadonlyArray<string> => {
  if (name === "" || name.length > longestName) return []
  const asked = name.toLowerCase()
  const most = Math.max(1, Math.floor(name.length / 3))
  const found: Array<readonly [candidate: string, distance: number]> = []
  let compared = 0
  for (const candidate of candidates) {
    if (compared++ >= mostCandidates) break
    const known = candidate.toLowerCase()
    // What one begins with is as near as a small slip: `chat` for `chat-large`.
    const apart = asked.length > 2 && known.startsWith(asked) ? 1 : distance(asked, known, most)
    if (apart <= most) found.push([candidate, apart])
  }
  return found.sort(([, one], [, other]) => one - other).slice(0, count).map(([candidate]) => candidate)
}
