/**
 * Edits of a raw configuration. They return a new object; untouched fields, unknown ones included, stay as they are.
 */
import type * as Schema from "effect/Schema"
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

const keySet = (raw: RawConfig): Set<string> =>
  new Set(keysOf(raw).flatMap((key) => typeof key === "string" ? [key.trim()] : []))

/** Records removed keys, so that they are never sent to the upstream as tokens. */
export const noteRemoved = (raw: RawConfig, keys: ReadonlyArray<string>): RawConfig => {
  if (keys.length === 0) return raw
  const gone = new Set<Schema.Json>(keys.slice(-mostRemoved).map(sha256Hex))
  const noted = new Set(removedOf(raw))
  // Another node may have recorded them already.
  if ([...gone].every((digest) => noted.has(digest))) return raw
  const removed = [...[...noted].filter((digest) => !gone.has(digest)), ...gone]
  return setField(raw, ["auth", "removed_keys"], removed.slice(-mostRemoved))
}

/** Records the keys of `before` that `after` lacks. */
export const noteRemovedKeys = (before: RawConfig, after: RawConfig): RawConfig => {
  if (before["keys"] === after["keys"]) return after
  const left = keySet(after)
  return noteRemoved(after, [...keySet(before)].filter((key) => !left.has(key)))
}
