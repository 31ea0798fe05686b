/**
 * The admin password as the configuration keeps it: scrypt with a salt, as `scrypt$N$r$p$salt$hash` in Base64url. Read here
 * and nowhere else, so that what no password could ever match is refused before it is in effect.
 */

/** The most memory that a configured hash may ask for, in bytes. */
export const passwordMemory = 256 * 1024 * 1024

/** A hash and how it was made. */
export interface StoredPassword {
  readonly cost: { readonly N: number; readonly r: number; readonly p: number }
  readonly salt: Buffer
  readonly hash: Buffer
}

/** The text of a hash. */
export const formatStoredPassword = ({ cost: { N, p, r }, hash, salt }: StoredPassword): string =>
  ["scrypt", N, r, p, salt.toString("base64url"), hash.toString("base64url")].join("$")

/** Reads a hash; `undefined` for one of another form, or beyond all bounds. */
export const parseStoredPassword = (text: string): StoredPassword | undefined => {
  const [scheme, n, r, p, salt, hash, ...rest] = text.split("$")
  if (scheme !== "scrypt" || salt === undefined || hash === undefined || rest.length > 0) return undefined
  const cost = { N: Number(n), r: Number(r), p: Number(p) }
  const stored: StoredPassword = { cost, salt: Buffer.from(salt, "base64url"), hash: Buffer.from(hash, "base64url") }
  const isValid = Object.values(cost).every((value) => Number.isInteger(value) && value > 0) &&
    Number.isInteger(Math.log2(cost.N)) && cost.N > 1 && stored.hash.length > 0 &&
    128 * cost.N * cost.r * cost.p < passwordMemory
  return isValid ? stored : undefined
}
