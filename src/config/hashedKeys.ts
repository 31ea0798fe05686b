/**
 * Gateway keys that the configuration keeps as hashes.
 */
import type * as Schema from "effect/Schema"
import { hashOfKey, isGuessable, keyDigest, keyId, keyPreview } from "../domain/identity.ts"
import { type RawConfig, sha256Hex } from "./json.ts"
import { keysOf, keyText } from "./rawConfig.ts"

/** The entry of `keys` for a key that is kept as a hash. */
export const hashedEntry = (key: string) => ({
  hash: `sha256:${keyDigest(key, sha256Hex)}`,
  preview: keyPreview(key)
})

/** What operators read of a key that stays a text although keys are kept as hashes. */
export const guessableKey = (id: string): string =>
  `the key ${id} can be guessed from a hash, so it stays as it is: replace it by a generated one`

/** A configuration whose keys are hashes. */
export interface HashedKeys {
  readonly raw: RawConfig
  /** The number of keys that were texts. */
  readonly hashed: number
  /** Ids of the keys that stay texts, because their hashes do not hide them. */
  readonly guessable: ReadonlyArray<string>
}

/** Replaces the keys of a configuration by their hashes, in one pass. */
export const hashKeys = (raw: RawConfig): HashedKeys => {
  const guessable: Array<string> = []
  let hashed = 0
  const keys = keysOf(raw).map((entry): Schema.Json => {
    const key = keyText(entry)
    if (typeof entry !== "string" || hashOfKey(key) !== undefined) return entry
    if (isGuessable(key)) {
      guessable.push(keyId(key, sha256Hex))
      return entry
    }
    hashed++
    return hashedEntry(key)
  })
  return { raw: hashed === 0 ? raw : { ...raw, keys }, hashed, guessable }
}
