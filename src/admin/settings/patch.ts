/**
 * Applies the body of `PUT /admin/settings` to a configuration. Only the settings of `config/settings.ts` can be written; the
 * configuration store checks types and ranges.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { ConfigInvalid, type Fault, fault, maxFaults } from "../../config/ConfigError.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { setField } from "../../config/rawConfig.ts"
import { settingsOf, writableGroups } from "../../config/settings.ts"
import { fieldName } from "../../domain/GatewayError.ts"
import { nearest } from "../../domain/nearest.ts"

/** Writable fields of each group; `undefined` for the aliases, whose names the operator chooses. */
const settings: ReadonlyMap<string, ReadonlyArray<string> | undefined> = new Map(
  writableGroups.map((name) => [name, settingsOf(name)])
)

/** Dotted paths of all writable settings. */
export const writablePaths: ReadonlySet<string> = new Set(
  [...settings].flatMap(([group, fields]) => fields?.map((field) => `${group}.${field}`) ?? [group])
)

/** `settings` with the older names that are accepted too. */
const fieldsByGroup: ReadonlyMap<string, ReadonlyArray<string> | undefined> = new Map(
  [...settings].map(([group, fields]) => [group, group === "auto_delete" ? [...fields ?? [], "sessions"] : fields])
)

/** Groups that are not patched field by field. */
const special: ReadonlySet<string> = new Set(["msgcompat_mapping", "model_aliases"])

const refusal = (path: ReadonlyArray<string>, known: Iterable<string>): Fault => {
  const name = path.at(-1)!
  // These groups have endpoints of their own.
  if (path.length === 1 && (name === "upstreams" || name === "routes")) {
    return fault(name, `is not a setting that can be changed here: it is changed by /admin/${name}`)
  }
  const [meant] = nearest(name, known)
  const rule = "is not a setting that can be changed here"
  const suggestion = meant === undefined ? "" : `: did you mean ${fieldName([...path.slice(0, -1), meant])}?`
  return fault(fieldName(path), `${rule}${suggestion}`)
}

/** A fault for each field that cannot be written: ignoring it would suggest that it is in effect. */
const refusals = (patch: RawConfig): ReadonlyArray<Fault> => {
  const faults: Array<Fault> = []
  for (const [name, values] of Object.entries(patch)) {
    if (faults.length > maxFaults) break
    const fields = fieldsByGroup.get(name)
    if (!fieldsByGroup.has(name)) faults.push(refusal([name], fieldsByGroup.keys()))
    else if (fields !== undefined && isJsonObject(values)) {
      for (const field of Object.keys(values).filter((given) => !fields.includes(given)).slice(0, maxFaults)) {
        faults.push(refusal([name, field], fields))
      }
    }
  }
  return faults
}

/** Translates the older flag `sessions` to a mode; a mode takes precedence. An invalid flag stays, to be refused. */
const namedMode = (group: RawConfig): RawConfig => {
  const { mode, sessions } = group
  if (mode !== undefined || (sessions !== null && typeof sessions !== "boolean")) return group
  return { mode: sessions === true ? "all" : "none" }
}

const given = (patch: RawConfig, name: string): Schema.Json | undefined =>
  Object.hasOwn(patch, name) ? patch[name] : undefined

const patchAutoDelete = (raw: RawConfig, group: RawConfig): RawConfig => {
  const { mode, sessions } = namedMode(group)
  if (mode === undefined) return sessions === undefined ? raw : setField(raw, ["auto_delete", "sessions"], sessions)
  // The older flag is removed, or it would take effect when the mode is unset.
  return setField(setField(raw, ["auto_delete", "mode"], mode ?? undefined), ["auto_delete", "sessions"], undefined)
}

/** Bounds the names in a log line. */
const mostNamed = 20

/** The names of the settings in a patch. */
export const namesIn = (patch: RawConfig): ReadonlyArray<string> =>
  Object.entries(patch).flatMap(([group, values]) =>
    fieldsByGroup.get(group) !== undefined && isJsonObject(values)
      ? Object.keys(values).map((field) => `${group}.${field}`)
      : [group]
  ).slice(0, mostNamed)

const mappingFields = ["fast", "slow"] as const

/**
 * Merges `fast` and `slow` into the configured mapping, which a file may have under an older name. `null` unsets one, or both
 * if it is the whole mapping. The configuration store refuses a mapping of another form.
 */
export const patchMapping = (raw: RawConfig, given: Schema.Json | undefined): RawConfig => {
  if (given === undefined) return raw
  const named = Object.hasOwn(raw, "msgcompat_mapping") || !Object.hasOwn(raw, "msgcompat_model_mapping")
    ? raw
    : { ...raw, msgcompat_mapping: raw["msgcompat_model_mapping"]! }
  const renamed = setField(named, ["msgcompat_model_mapping"], undefined)
  if (given !== null && !isJsonObject(given)) return { ...renamed, msgcompat_mapping: given }
  return mappingFields.reduce((next, field) => {
    const value = given === null ? null : given[field]
    return value === undefined ? next : setField(next, ["msgcompat_mapping", field], value ?? undefined)
  }, renamed)
}

/**
 * Applies a patch: an absent field stays, `null` unsets, and a field that cannot be written refuses the patch. A group that is
 * not an object is set as it is, so that the configuration store reports it together with other faults.
 */
export const patchSettings = (raw: RawConfig, patch: RawConfig): Result.Result<RawConfig, ConfigInvalid> => {
  const refused = refusals(patch)
  if (refused.length > 0) return Result.fail(ConfigInvalid.of(refused))
  let next = raw
  for (const [name, fields = []] of settings) {
    const values = special.has(name) ? undefined : given(patch, name)
    if (values === undefined) continue
    if (values !== null && !isJsonObject(values)) next = setField(next, [name], values)
    else if (values !== null && name === "auto_delete") next = patchAutoDelete(next, values)
    else {
      for (const field of fields) {
        const value = values === null ? null : given(values, field)
        if (value !== undefined) next = setField(next, [name, field], value ?? undefined)
      }
      if (name === "auto_delete") next = setField(next, [name, "sessions"], undefined)
    }
  }
  const aliases = given(patch, "model_aliases")
  if (aliases !== undefined) next = setField(next, ["model_aliases"], aliases ?? undefined)
  return Result.succeed(patchMapping(next, given(patch, "msgcompat_mapping")))
}
