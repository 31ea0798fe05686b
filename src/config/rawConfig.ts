/**
 * Edits of a raw configuration. They return a new object; untouched fields, unknown ones included, stay as they are.
 */
import type * as Schema from "effect/Schema"
import { hashedKey, hashOfKey, keyDigest } from "../domain/identity.ts"
import { isJsonObject, type RawConfig, sha256Hex } from "./json.ts"

/**
 * Sets one field and creates missing groups on its path. `undefined` removes the field. Returns the same object if nothing
 * changes.
 */
export const setField = (
  raw: RawConfig,
  path: readonly [string, ...Array<string>],
  value: Schema.Json | undefined
): RawConfig => {
  const [name, next, ...further] = path
  if (value === undefined && !Object.hasOwn(raw, name)) return raw
  if (next !== undefined) {
    const group = Object.hasOwn(raw, name) ? raw[name] : undefined
    if (value === undefined && isJsonObject(group) && setField(group, [next, ...further], value) === group) return raw
    return { ...raw, [name]: setField(isJsonObject(group) ? group : {}, [next, ...further], value) }
  }
  if (value !== undefined) return { ...raw, [name]: value }
  return Object.fromEntries(Object.entries(raw).filter(([key]) => key !== name))
}

export const keysOf = (raw: RawConfig): ReadonlyArray<Schema.Json> => Array.isArray(raw["keys"]) ? raw["keys"] : []

/** The text of an entry of `keys`, which may be a hash; empty for a wrong one. */
export const keyText = (entry: Schema.Json): string =>
  typeof entry === "string"
    ? entry.trim()
    : isJsonObject(entry) && typeof entry["hash"] === "string"
    ? hashedKey(entry["hash"], typeof entry["preview"] === "string" ? entry["preview"] : "")
    : ""

/** The entries of `accounts`, in the order of `GatewayConfig.accounts`. */
export const accountsOf = (raw: RawConfig): ReadonlyArray<RawConfig> =>
  Array.isArray(raw["accounts"]) ? raw["accounts"].filter(isJsonObject) : []

/** Maximum number of remembered removed keys. */
const mostRemoved = 1000

const without = (raw: RawConfig, group: string, field: string): RawConfig => {
  const next = setField(raw, [group, field], undefined)
  const left = next[group]
  // Removes the group too if it has no other field.
  return next !== raw && isJsonObject(left) && Object.keys(left).length === 0
    ? setField(next, [group], undefined)
    : next
}

/** The configuration without the connection to the store. */
export const withoutStore = (raw: RawConfig): RawConfig => setField(raw, ["store"], undefined)

/**
 * The configuration for exports, hashes and syncs: without the state of the host sync, the digests of removed keys, the
 * check of the admin password, and the connection to the store.
 */
export const withoutOwnFields = (raw: RawConfig): RawConfig =>
  without(
    without(withoutStore(setField(raw, ["host"], undefined)), "auth", "removed_keys"),
    "admin",
    "password_check"
  )

/** The configuration for its hash, in which the order of upstreams and routes counts: it has a meaning. */
export const withOrder = (raw: RawConfig): RawConfig => {
  const { routes, upstreams } = raw
  return {
    ...raw,
    ...(isJsonObject(upstreams) ? { upstreams: Object.entries(upstreams) } : {}),
    ...(isJsonObject(routes) ? { routes: Object.entries(routes) } : {})
  }
}

const removedOf = (raw: RawConfig): ReadonlyArray<Schema.Json> => {
  const auth = raw["auth"]
  const removed = isJsonObject(auth) ? auth["removed_keys"] : undefined
  return Array.isArray(removed) ? removed : []
}

/** Records the digests of removed keys, so that they are never sent to the upstream as tokens. */
export const noteRemoved = (raw: RawConfig, digests: ReadonlyArray<string>): RawConfig => {
  if (digests.length === 0) return raw
  const gone = new Set<Schema.Json>(digests.slice(-mostRemoved))
  const noted = new Set(removedOf(raw))
  // Another node may have recorded them already.
  if ([...gone].every((digest) => noted.has(digest))) return raw
  const removed = [...[...noted].filter((digest) => !gone.has(digest)), ...gone]
  return setField(raw, ["auth", "removed_keys"], removed.slice(-mostRemoved))
}

/** What tells keys apart: their digests where one is known by its hash, else the keys themselves, which costs no hashing. */
export const keyIdentityIn = (...lists: ReadonlyArray<ReadonlyArray<string>>): (key: string) => string =>
  lists.some((keys) => keys.some((key) => hashOfKey(key) !== undefined))
    ? (key) => keyDigest(key, sha256Hex)
    : (key) => key

/** Digests of the keys that `before` has and `after` does not. */
export const goneKeys = (before: RawConfig, after: RawConfig): ReadonlyArray<string> => {
  if (before["keys"] === after["keys"]) return []
  const [had, has] = [keysOf(before).map(keyText), keysOf(after).map(keyText)]
  const identity = keyIdentityIn(had, has)
  const left = new Set(has.map(identity))
  return [...new Set(had)].filter((key) => key !== "" && !left.has(identity(key))).map((key) =>
    keyDigest(key, sha256Hex)
  )
}

/** Records the keys of `before` that `after` lacks. */
export const noteRemovedKeys = (before: RawConfig, after: RawConfig): RawConfig =>
  noteRemoved(after, goneKeys(before, after))
