/**
 * Suggests the names that a misspelled one probably means.
 */

/** The longest name that is compared. */
const longestName = 64

/** The most candidates that are compared. */
const mostCandidates = 1_000

/** The edit distance with transpositions (Damerau–Levenshtein), capped at `most + 1` for names of very different lengths. */
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

/** A model's name without its publisher and its tag: `qwen3` of `Qwen/qwen3:8b`. Other names have neither. */
const bare = (name: string): string => name.replace(/^.*\/|:.*$/g, "")

/** The nearest candidates, at most `count`, of which up to a third of the letters differ from `name`; case is ignored. */
export const nearest = (name: string, candidates: Iterable<string>, count = 1): ReadonlyArray<string> => {
  if (name === "" || name.length > longestName) return []
  const asked = name.toLowerCase()
  const most = Math.max(1, Math.floor(name.length / 3))
  const found: Array<readonly [candidate: string, distance: number]> = []
  let compared = 0
  for (const candidate of candidates) {
    if (compared++ >= mostCandidates) break
    const known = candidate.toLowerCase()
    const own = bare(known)
    // A prefix counts as one typo: `chat` for `chat-large`.
    const apart = asked.length > 2 && (known.startsWith(asked) || own.startsWith(asked))
      ? 1
      : Math.min(distance(asked, known, most), own === known ? most + 1 : distance(asked, own, most))
    if (apart <= most) found.push([candidate, apart])
  }
  return found.sort(([, one], [, other]) => one - other).slice(0, count).map(([candidate]) => candidate)
}
