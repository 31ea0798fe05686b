/**
 * From a request's fields to a key's record as the configuration keeps it. What is wrong with them is left for the
 * configuration's own check to find and name, but for models that nothing resolves to: a file may have such, a request not.
 */
import type * as Schema from "effect/Schema"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { modelsNamed } from "../../config/keyRecords.ts"
import { type GatewayError, invalidRequest } from "../../domain/GatewayError.ts"
import { formatTimestamp, parseTimestamp } from "../../domain/timestamp.ts"

const fields = ["name", "note", "disabled", "expires_at", "models", "max_inflight", "limits"] as const

/** What stands for nothing beside `null`. Of other fields the same is a mistake, and must not take a limit away. */
const isNothing = (field: (typeof fields)[number], value: Schema.Json): boolean => {
  switch (field) {
    case "name":
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

/** A field's value in the form that is kept: texts trimmed, times in UTC, absent limits left out. */
const kept = (field: (typeof fields)[number], value: Schema.Json): Schema.Json => {
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

/** Lays the fields that a request gives over a record: `null` clears, what is not named stays. */
export const patchRecord = (record: RawConfig, given: RawConfig): RawConfig => {
  const next: Record<string, Schema.Json> = { ...record }
  for (const field of fields) {
    const value = Object.hasOwn(given, field) ? given[field] : undefined
    if (value === undefined) continue
    if (value === null || isNothing(field, value)) delete next[field]
    else next[field] = kept(field, value)
  }
  return next
}

/** The fault of a request that names a model which nothing resolves to. */
export const unknownModel = (config: GatewayConfig, id: string, given: RawConfig): GatewayError | undefined => {
  const models = given["models"]
  if (!Array.isArray(models)) return undefined
  const place = models.findIndex((name) => typeof name === "string" && modelsNamed(config, name).length === 0)
  if (place === -1) return undefined
  const field = `key_records.${id}.models[${place}]`
  return invalidRequest(`${field} must name a model that requests can ask for`, field)
}
