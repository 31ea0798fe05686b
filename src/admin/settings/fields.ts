/**
 * The settings of the configuration with their values, made from the configuration's schemas: a field that is added there
 * is here too.
 */
import * as Schema from "effect/Schema"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { shownAddress, shownEntry, shownProxy } from "../../config/hidden.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { hidden } from "../../config/references.ts"
import { settingGroups } from "../../config/schema.ts"
import { type SettingsField, type SettingsInEffect, shownGroups } from "./Api.ts"
import { writablePaths } from "./patch.ts"

/** The part of a JSON schema that forms use. */
const FieldSchema = Schema.Struct({
  type: Schema.optionalKey(Schema.String),
  minimum: Schema.optionalKey(Schema.Number),
  maximum: Schema.optionalKey(Schema.Number),
  enum: Schema.optionalKey(Schema.Array(Schema.String)),
  description: Schema.optionalKey(Schema.String),
  properties: Schema.optionalKey(Schema.Record(Schema.String, Schema.Unknown))
})

const decodeField = Schema.decodeUnknownSync(FieldSchema)
const decodeJson = Schema.decodeUnknownSync(Schema.Json)

const typeOf = ({ enum: choices, type }: typeof FieldSchema.Type): (typeof SettingsField.Type)["type"] => {
  if (choices !== undefined) return "choice"
  switch (type) {
    case "integer":
    case "number":
    case "boolean":
      return type
    case "object":
      return "map"
    default:
      return "text"
  }
}

const at = (value: unknown, path: ReadonlyArray<string>): unknown => {
  let found = value
  for (const name of path) {
    found = typeof found === "object" && found !== null && Object.hasOwn(found, name)
      ? Reflect.get(found, name)
      : undefined
  }
  return found
}

/** A value as JSON: a map as an object, `undefined` as `null`. */
const toJson = (value: unknown): Schema.Json =>
  value === undefined ? null : decodeJson(value instanceof Map ? Object.fromEntries(value) : value)

/** A setting without its values. */
interface Described extends Omit<typeof SettingsField.Type, "configured" | "effective"> {
  readonly keys: ReadonlyArray<string>
}

const describe = (keys: ReadonlyArray<string>, schema: unknown, defaults: unknown): ReadonlyArray<Described> => {
  const field = decodeField(schema)
  const path = keys.join(".")
  if (field.properties !== undefined) {
    return Object.entries(field.properties).flatMap(([name, of]) => describe([...keys, name], of, at(defaults, [name])))
  }
  // Fields without a description are internal state, secrets or older names.
  if (field.description === undefined) return []
  return [{
    keys,
    path,
    type: typeOf(field),
    minimum: field.minimum ?? null,
    maximum: field.maximum ?? null,
    choices: field.enum ?? null,
    default: toJson(defaults),
    writable: writablePaths.has(path),
    description: field.description
  }]
}

/** Computed once: schemas do not change. */
let described: ReadonlyArray<Described> | undefined

const describeAll = (): ReadonlyArray<Described> =>
  Object.entries(settingGroups).flatMap(([name, group]: [string, Schema.ConstraintDecoder<unknown>]) =>
    describe([name], Schema.toJsonSchemaDocument(group).schema, Schema.decodeUnknownSync(group)({}))
  )

/** The file's settings without secrets. Renames the mapping of a file that has its older name. */
const shownConfig = (raw: RawConfig): RawConfig => {
  const { msgcompat_model_mapping: older, upstream } = raw
  return {
    ...raw,
    ...(isJsonObject(older) && !Object.hasOwn(raw, "msgcompat_mapping") ? { msgcompat_mapping: older } : {}),
    ...(isJsonObject(upstream) ? { upstream: shownEntry(upstream) } : {})
  }
}

/** The group `upstream` in effect, without secrets. */
const upstreamInEffect = ({ request_timeouts, route_table, upstreams }: GatewayConfig) => {
  const own = upstreams.get(route_table.config.unnamed)
  if (own === undefined) return { timeouts: request_timeouts }
  return {
    ...own,
    timeouts: { ...own.timeouts, ...request_timeouts },
    base_url: shownAddress(own.base_url),
    models: Object.fromEntries(
      own.models.map(({ id, model, reasoning, search }) => [id, { model, reasoning, search }])
    ),
    headers: Object.fromEntries(own.headers.map(({ name }) => [name, hidden])),
    proxy: shownProxy(own.proxy),
    tls: own.tls === undefined ? undefined : { server_name: own.tls.serverName },
    max_inflight: own.limits.global,
    account_max_inflight: own.limits.perAccount,
    account_max_queue: own.limits.queue
  }
}

/** Every setting with what is configured and what is in effect. */
export const settingsFields = (raw: RawConfig, config: GatewayConfig): ReadonlyArray<typeof SettingsField.Type> => {
  described ??= describeAll()
  const configured = shownConfig(raw)
  const effective = { ...config, upstream: upstreamInEffect(config) }
  return described.map(({ keys, ...field }) => ({
    ...field,
    configured: toJson(at(configured, keys)),
    effective: toJson(at(effective, keys))
  }))
}

const groupInEffect = (group: object) =>
  Object.fromEntries(
    Object.entries(group instanceof Map ? Object.fromEntries(group) : group).map((
      [name, value]
    ) => [name, value ?? null])
  )

/** The values in effect of the groups that `GET /admin/settings` shows. Its schema leaves out values that are no settings. */
export const groupsInEffect = (config: GatewayConfig) =>
  Object.fromEntries(shownGroups.map((name) => [name, groupInEffect(config[name])])) as unknown as SettingsInEffect
