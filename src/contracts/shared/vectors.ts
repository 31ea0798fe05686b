/** Vectors in the replies of servers. */

/** True for a list of numbers that is not empty. */
export const isVector = (value: unknown): value is ReadonlyArray<number> =>
  Array.isArray(value) && value.length > 0 && value.every((number) => typeof number === "number")
