/**
 * Counts of the most frequent values among any number of them (Misra and Gries).
 */

/**
 * Counts a value once. Beyond `most` values each of them loses one count in place of another value: so a count is never above the true
 * one, and below it by less than the (`most` + 1)th part of all.
 */
export const countAmong = (counts: Map<string, number>, value: string, most: number): void => {
  const count = counts.get(value)
  if (count !== undefined) counts.set(value, count + 1)
  else if (counts.size < most) counts.set(value, 1)
  else {
    for (const [each, its] of counts) {
      if (its === 1) counts.delete(each)
      else counts.set(each, its - 1)
    }
  }
}

/** Adds counts up by value. */
export const addCounts = (into: Map<string, number>, from: Iterable<readonly [value: string, count: number]>): void => {
  for (const [value, count] of from) into.set(value, (into.get(value) ?? 0) + count)
}

/** The largest counts, at most `most`; equal ones by value. */
export const largestOf = (
  counts: Iterable<readonly [value: string, count: number]>,
  most: number
): ReadonlyArray<readonly [value: string, count: number]> =>
  [...counts].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1)).slice(0, most)
