/**
 * What a configuration holds for the instance itself: never exported, hashed or synced.
 */
import type * as Schema from "effect/Schema"
import { keysOf, setField } from "./edit.ts"
import { isJsonObject, type RawConfig, sha256Hex } from "./json.ts"

/** Removed keys that are known. */
const mostRemoved = 1000

const without = (raw: RawConfig, group: string, field: string): RawConfig => {
  const next = setField(raw, [group, field], undefined)
  const left = next[group]
  // The group may be there for this field alone.
  return next !== raw && isJsonObject(left) && Object.keys(left).length === 0
    ? setField(next, [group], undefined)
    : next
}

/** The configuration without what says where its node finds the store. */
export const withoutStore = (raw: RawConfig): RawConfig => setField(raw, ["store"], undefined)

/**
 * The configuration without what the host sync keeps, the digests of removed keys, the check of the admin password, and
 * where the store is.
 */
export const withoutOwnFields = (raw: RawConfig): RawConfig =>
  without(
    without(withoutStore(setField(raw, ["host"], undefined)), "auth", "removed_keys"),
    "admin",
    "password_check"
  )

const removedOf = (raw: RawConfig): ReadonlyArray<Schema.Json> => {
  const auth = raw["auth"]
  const removed = isJsonObject(auth) ? auth["removed_keys"] : undefined
  return Array.isArray(removed) ? removed : []
}

const keySet = (raw: RawConfig): Set<string> =>
  new Set(keysOf(raw).flatMap((key) => typeof key === "string" ? [key.trim()] : []))

/** Notes keys that are removed, so that none of them is ever taken for an upstream token. */
export const noteRemoved = (raw: RawConfig, keys: ReadonlyArray<string>): RawConfig => {
  if (keys.length === 0) return raw
  const gone = new Set<Schema.Json>(keys.slice(-mostRemoved).map(sha256Hex))
  const noted = new Set(removedOf(raw))
  // Another node may have noted them with its change.
  if ([...gone].every((digest) => noted.has(digest))) return raw
  const removed = [...[...noted].filter((digest) => !gone.has(digest)), ...gone]
  return setField(raw, ["auth", "removed_keys"], removed.slice(-mostRemoved))
}

/** Notes the keys of `before` that `after` does not have. */
export const noteRemovedKeys = (before: RawConfig, after: RawConfig): RawConfig => {
  if (before["keys"] === after["keys"]) return after
  const left = keySet(after)
  return noteRemoved(after, [...keySet(before)].filter((key) => !left.has(key)))
}
