/**
 * Changes to a raw configuration. Nothing is changed in place, and what is not touched stays as it was, unknown fields
 * included.
 */
import type * as Schema from "effect/Schema"
import { isJsonObject, type RawConfig } from "./json.ts"

/** Sets one field, making the groups on the way to it. `undefined` removes the field; what has none stays the same object. */
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

/** The entries of `keys`. */
export const keysOf = (raw: RawConfig): ReadonlyArray<Schema.Json> => Array.isArray(raw["keys"]) ? raw["keys"] : []

/** The entries of `accounts`, in the order of the decoded `GatewayConfig.accounts`. */
export const accountsOf = (raw: RawConfig): ReadonlyArray<RawConfig> =>
  Array.isArray(raw["accounts"]) ? raw["accounts"].filter(isJsonObject) : []
