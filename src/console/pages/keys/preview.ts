/**
 * How a key is named on pages.
 */

/** The beginning of a key: eight characters at most, and never more than a third of it. */
export const previewOf = (key: string): string => `${key.slice(0, Math.min(8, Math.floor(key.length / 3)))}...`

/** A key of 32 random bytes, as the gateway itself makes them. */
export const randomKey = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  return `sk-gw-${btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`
}
