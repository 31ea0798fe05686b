/**
 * From the body of `PUT /admin/settings` to the configuration that it asks for. Only the settings listed here can be written;
 * whether they are of the right types and in their ranges is for the configuration's own check.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { setField } from "../../config/edit.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { patchMapping } from "../mapping.ts"

/** The groups and fields that can be written, beside the mapping and the aliases. */
const groups: ReadonlyArray<readonly [group: string, fields: ReadonlyArray<string>]> = [
  ["admin", ["jwt_expire_hours"]],
  [
    "runtime",
    [
      "account_max_inflight",
      "account_max_queue",
      "global_max_inflight",
      "token_refresh_interval_hours",
      "key_max_inflight"
    ]
  ],
  ["compat", ["wide_input_strict_output", "strip_reference_markers"]],
  ["responses", ["store_ttl_seconds"]],
  ["embeddings", ["provider"]],
  ["auto_delete", ["mode"]],
  ["captures", ["enabled", "limit", "max_body_bytes"]],
  ["requests", ["enabled", "bodies", "limit", "max_body_bytes", "max_total_bytes"]]
]

/** Dotted paths of all settings that can be written. */
export const writablePaths: ReadonlySet<string> = new Set([
  ...groups.flatMap(([group, fields]) => fields.map((field) => `${group}.${field}`)),
  "msgcompat_mapping.fast",
  "msgcompat_mapping.slow",
  "model_aliases"
])

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

/**
 * Lays a patch over a configuration: what it does not name stays, `null` unsets. What is no group at all is put in the
 * group's place, for the configuration's check to refuse together with all else.
 */
export const patchSettings = (raw: RawConfig, patch: RawConfig): Result.Result<RawConfig, never> => {
  let next = raw
  for (const [name, fields] of groups) {
    const values = given(patch, name)
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
