/**
 * How a key is named on pages.
 */
import { sha256Hex } from "../../parts/sha256.ts"

/** The id that the gateway gives a key: the first 16 hex digits of the SHA-256 of it without surrounding blanks. */
export const keyIdOf = (key: string): string => sha256Hex(key.trim()).slice(0, 16)

const indexes = new WeakMap<ReadonlyArray<string>, Map<string, string>>()

/** The key of an id; `undefined` where none of the keys has it. No more of them are looked through than it takes, and once. */
export const keyOfId = (keys: ReadonlyArray<string>, id: string): string | undefined => {
  const index = indexes.get(keys) ?? new Map<string, string>()
  indexes.set(keys, index)
  // Keys of a configuration are different: there is one entry for each that was looked at.
  for (let at = index.size; at < keys.length && !index.has(id); at++) index.set(keyIdOf(keys[at]!), keys[at]!)
  return index.get(id)
}

/** The beginning of a key: eight characters at most, and never more than a third of it. */
export const previewOf = (key: string): string => `${key.slice(0, Math.min(8, Math.floor(key.length / 3)))}...`

/** A key of 32 random bytes, as the gateway itself makes them. */
export const randomKey = (): string => {
  const bytes = crypto.getRandomValues(new Uint8Array(32))
  return `sk-gw-${btoa(String.fromCharCode(...bytes)).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`
}
