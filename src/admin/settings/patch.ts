/**
 * From the body of `PUT /admin/settings` to the configuration that it asks for. Only the settings that the spec names can be
 * written here; values and ranges are for the configuration's own check.
 */
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import { setField } from "../../config/edit.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { patchMapping } from "../mapping.ts"

/** The groups and fields that the spec names, beside the mapping and the aliases. */
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
  ["auto_delete", ["mode"]]
]

/** An older flag stands for a mode; next to a mode it says nothing. */
const namedMode = (group: RawConfig): Result.Result<RawConfig, GatewayError> => {
  const { mode, sessions } = group
  if (mode !== undefined || sessions === undefined) return Result.succeed(group)
  if (sessions === null || typeof sessions === "boolean") return Result.succeed({ mode: sessions ? "all" : "none" })
  return Result.fail(invalidRequest("auto_delete.sessions must be true or false", "auto_delete.sessions"))
}

const given = (patch: RawConfig, name: string): Schema.Json | undefined =>
  Object.hasOwn(patch, name) ? patch[name] : undefined

/** Lays a patch over a configuration: what it does not name stays, `null` unsets. Fails for a group that is no object. */
export const patchSettings = (raw: RawConfig, patch: RawConfig): Result.Result<RawConfig, GatewayError> => {
  let next = raw
  for (const [name, fields] of groups) {
    const values = given(patch, name)
    if (values === undefined) continue
    if (values !== null && !isJsonObject(values)) return Result.fail(invalidRequest(`${name} must be an object`, name))
    const group = values !== null && name === "auto_delete" ? namedMode(values) : Result.succeed(values)
    if (Result.isFailure(group)) return Result.fail(group.failure)
    for (const field of fields) {
      const value = group.success === null ? null : given(group.success, field)
      if (value === undefined) continue
      next = setField(next, [name, field], value ?? undefined)
      // Left in place, the older flag would come into force again when the mode is unset.
      if (name === "auto_delete") next = setField(next, [name, "sessions"], undefined)
    }
  }
  const aliases = given(patch, "model_aliases")
  if (aliases !== undefined) next = setField(next, ["model_aliases"], aliases ?? undefined)
  return Result.succeed(patchMapping(next, given(patch, "msgcompat_mapping")))
}
