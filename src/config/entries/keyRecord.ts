/**
 * Changes of a key's record in the configuration. The configuration store validates the fields; only unknown models are refused
 * here, since a file may name them.
 */
import type * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { allowsSome } from "../../domain/allowedRoutes.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { meantRoute } from "../../domain/routes.ts"
import { formatTimestamp, parseTimestamp } from "../../domain/time.ts"
import type { GatewayConfig } from "../GatewayConfig.ts"
import { isJsonObject, type RawConfig } from "../json.ts"
import { KeyRecordEntry } from "../schema.ts"

/** All but the time of the key's making. */
const fields = Struct.keys(Struct.omit(KeyRecordEntry.fields, ["created_at"]))

type Field = (typeof fields)[number]

/**
 * The fields of a key's record in a change, with values as `key_records` of the file has them. An absent field stays, `null` clears it; lists
 * are replaced as a whole.
 */
export type KeyFields = { readonly [Name in Field]?: Schema.Json | undefined }

/** Whether a value clears its field, as `null` does. An empty value of another field is a mistake, and must not remove a limit. */
const isCleared = (field: Field, value: Schema.Json): boolean => {
  switch (field) {
    case "name":
    case "label":
    case "note":
    case "expires_at":
      return typeof value === "string" && value.trim() === ""
    case "disabled":
      return value === false
    case "limits":
      return Array.isArray(value) && value.length === 0
    default:
      return false
  }
}

/** A value in the form of the configuration: texts trimmed, times in UTC, without absent limits. */
const normalized = (field: Field, value: Schema.Json): Schema.Json => {
  if (field === "limits" && Array.isArray(value)) {
    return value.map((limit) =>
      isJsonObject(limit) ? Object.fromEntries(Object.entries(limit).filter(([, each]) => each !== null)) : limit
    )
  }
  if (field === "models" && Array.isArray(value)) {
    return value.map((name) => typeof name === "string" ? name.trim() : name)
  }
  if (typeof value !== "string") return value
  const time = field === "expires_at" ? parseTimestamp(value) : undefined
  return time === undefined ? value.trim() : formatTimestamp(time)
}

/** Applies the fields of a change to a record. */
export const patchRecord = (record: RawConfig, given: KeyFields): RawConfig => {
  const next: Record<string, Schema.Json> = { ...record }
  for (const field of fields) {
    const value = Object.hasOwn(given, field) ? given[field] : undefined
    if (value === undefined) continue
    if (value === null || isCleared(field, value)) delete next[field]
    else next[field] = normalized(field, value)
  }
  return next
}

/** The error for a fallback that does not resolve; `undefined` if all do. */
const unknownFallback = (
  { route_table }: GatewayConfig,
  id: string,
  limits: Schema.Json | undefined
): GatewayError | undefined => {
  if (!Array.isArray(limits)) return undefined
  const place = limits.findIndex((limit: Schema.Json) => {
    const fallback = isJsonObject(limit) ? limit["fallback"] : undefined
    return typeof fallback === "string" && meantRoute(route_table, "usual", fallback) === undefined
  })
  if (place === -1) return undefined
  const field = `key_records.${id}.limits[${place}].fallback`
  return invalidRequest(`${field} must name a model or a route`, field)
}

/** The error for a model that does not resolve; `undefined` if all do. */
export const unknownModel = (
  config: GatewayConfig,
  id: string,
  { limits, models }: KeyFields
): GatewayError | undefined => {
  if (!Array.isArray(models)) return unknownFallback(config, id, limits)
  const place = models.findIndex((name) => typeof name === "string" && !allowsSome(config.route_table, name))
  if (place === -1) return unknownFallback(config, id, limits)
  const field = `key_records.${id}.models[${place}]`
  return invalidRequest(`${field} must name a model that requests can ask for`, field)
}
