/**
 * The admin password as the configuration stores it: a scrypt hash with its parameters, as one text.
 */

/** Maximum memory for a configured hash, in bytes. */
export const passwordMemory = 256 * 1024 * 1024

/** A password hash with its scrypt parameters. */
export interface StoredPassword {
  readonly cost: { readonly N: number; readonly r: number; readonly p: number }
  readonly salt: Buffer
  readonly hash: Buffer
}

/** Formats a hash as `scrypt$N$r$p$salt$hash`, with salt and hash in Base64url. */
export const formatStoredPassword = ({ cost: { N, p, r }, hash, salt }: StoredPassword): string =>
  ["scrypt", N, r, p, salt.toString("base64url"), hash.toString("base64url")].join("$")

/**
 * Parses a hash; `undefined` if it is malformed or exceeds the bounds. The schema rejects such a hash before it takes
 * effect.
 */
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
