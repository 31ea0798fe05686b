/**
 * Durations counted in fixed buckets, so that the counts of several nodes can be added.
 *
 * Each doubling of a duration has 16 buckets. A quantile is interpolated within its bucket, so it differs from the exact one by at most
 * the width of a bucket, which is 4.5 percent (1 millisecond below 1 millisecond). The last bucket has all durations from
 * 2^22 milliseconds on, which are 70 minutes.
 */

const perDoubling = 16
/** The number of buckets. */
export const bucketCount = 22 * perDoubling + 1

/** The bucket of a duration in milliseconds. */
export const bucketOf = (millis: number): number =>
  millis <= 1 ? 0 : Math.min(bucketCount - 1, Math.ceil(Math.log2(millis) * perDoubling))

/**
 * The duration in milliseconds that a share of the counted ones does not exceed; `null` without any. The buckets come from `counts`
 * from `start` on.
 */
export const quantileOfBuckets = (counts: Uint32Array, share: number, start = 0): number | null => {
  let total = 0
  for (let i = 0; i < bucketCount; i++) total += counts[start + i]!
  if (total === 0) return null
  let rank = Math.max(1, Math.ceil(share * total))
  let bucket = 0
  while (rank > counts[start + bucket]!) rank -= counts[start + bucket++]!
  const within = (rank - 0.5) / counts[start + bucket]!
  return bucket === 0 ? Math.round(within) : Math.round(2 ** ((bucket - 1 + within) / perDoubling))
}

/** The buckets that are not empty as pairs of index and count, for other nodes. */
export const bucketPairs = (counts: Uint32Array, start = 0): ReadonlyArray<number> => {
  const pairs: Array<number> = []
  for (let i = 0; i < bucketCount; i++) {
    const count = counts[start + i]!
    if (count > 0) pairs.push(i, count)
  }
  return pairs
}

/** Adds pairs of index and count to buckets. */
export const addBucketPairs = (counts: Uint32Array, pairs: ReadonlyArray<number>, start = 0): void => {
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const bucket = pairs[i]!
    if (bucket < bucketCount) counts[start + bucket]! += pairs[i + 1]!
  }
}
