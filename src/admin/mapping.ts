/**
 * Changes to `msgcompat_mapping`, which a file may hold by its older name.
 */
import type * as Schema from "effect/Schema"
import { setField } from "../config/edit.ts"
import { isJsonObject, type RawConfig } from "../config/json.ts"

const fields = ["fast", "slow"] as const

/**
 * Lays the given `fast` and `slow` over the mapping that is configured; `null` unsets one, or both where it is the whole
 * mapping. What is no mapping at all is left for the configuration's own check to refuse.
 */
export const patchMapping = (raw: RawConfig, given: Schema.Json | undefined): RawConfig => {
  if (given === undefined) return raw
  const named = Object.hasOwn(raw, "msgcompat_mapping") || !Object.hasOwn(raw, "msgcompat_model_mapping")
    ? raw
    : { ...raw, msgcompat_mapping: raw["msgcompat_model_mapping"]! }
  const renamed = setField(named, ["msgcompat_model_mapping"], undefined)
  if (given !== null && !isJsonObject(given)) return { ...renamed, msgcompat_mapping: given }
  return fields.reduce((next, field) => {
    const value = given === null ? null : given[field]
    return value === undefined ? next : setField(next, ["msgcompat_mapping", field], value ?? undefined)
  }, renamed)
}
