/**
 * From the body of `PUT /admin/settings` to the configuration that it asks for. Only the settings of `config/settings.ts` can be
 * written; whether they are of the right types and in their ranges is for the configuration's own check.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { ConfigInvalid, type Fault, fault, maxFaults } from "../../config/ConfigError.ts"
import { setField } from "../../config/edit.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { settingsOf, writableGroups } from "../../config/settings.ts"
import { fieldName } from "../../domain/fieldName.ts"
import { nearest } from "../../domain/nearest.ts"
import { patchMapping } from "../mapping.ts"

/** Fields of each group that can be written; `undefined` for the aliases, whose names are the operator's. */
const settings: ReadonlyMap<string, ReadonlyArray<string> | undefined> = new Map(
  writableGroups.map((name) => [name, settingsOf(name)])
)

/** Dotted paths of all settings that can be written. */
export const writablePaths: ReadonlySet<string> = new Set(
  [...settings].flatMap(([group, fields]) => fields?.map((field) => `${group}.${field}`) ?? [group])
)

/** The same with older names, which are accepted. */
const fieldsByGroup: ReadonlyMap<string, ReadonlyArray<string> | undefined> = new Map(
  [...settings].map(([group, fields]) => [group, group === "auto_delete" ? [...fields ?? [], "sessions"] : fields])
)

/** Groups that are laid over a configuration in another way than field by field. */
const onTheirOwn: ReadonlySet<string> = new Set(["msgcompat_mapping", "model_aliases"])

const refusal = (path: ReadonlyArray<string>, known: Iterable<string>): Fault => {
  const name = path.at(-1)!
  const [meant] = nearest(name, known)
  const rule = "is not a setting that can be changed here"
  const suggestion = meant === undefined ? "" : `: did you mean ${fieldName([...path.slice(0, -1), meant])}?`
  return fault(fieldName(path), `${rule}${suggestion}`)
}

/** A fault for each field that cannot be written: to leave it out in silence would be to say that it is in effect. */
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

/** An older flag stands for a mode; next to a mode it says nothing. A flag that is none stays, to be refused. */
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
  // Left in place, the older flag would come into force again when the mode is unset.
  return setField(setField(raw, ["auto_delete", "mode"], mode ?? undefined), ["auto_delete", "sessions"], undefined)
}

/** Names of settings that are told at most. */
const mostNamed = 20

/** The settings that a patch names, without their values. */
export const namesIn = (patch: RawConfig): ReadonlyArray<string> =>
  Object.entries(patch).flatMap(([group, values]) =>
    fieldsByGroup.get(group) !== undefined && isJsonObject(values)
      ? Object.keys(values).map((field) => `${group}.${field}`)
      : [group]
  ).slice(0, mostNamed)

/**
 * Lays a patch over a configuration: what it does not name stays, `null` unsets, and a field that cannot be written refuses
 * the whole. What is no group at all is put in the
 * group's place, for the configuration's check to refuse together with all else.
 */
export const patchSettings = (raw: RawConfig, patch: RawConfig): Result.Result<RawConfig, ConfigInvalid> => {
  const refused = refusals(patch)
  if (refused.length > 0) return Result.fail(ConfigInvalid.of(refused))
  let next = raw
  for (const [name, fields = []] of settings) {
    const values = onTheirOwn.has(name) ? undefined : given(patch, name)
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
