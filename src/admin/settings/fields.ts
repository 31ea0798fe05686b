/**
 * The settings of the configuration with their values, and the fields of its entries, made from the configuration's schemas: a field
 * that is added there is here too.
 */
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import type { GatewayConfig } from "../../config/GatewayConfig.ts"
import { shownAddress, shownEntry, shownProxy } from "../../config/hidden.ts"
import { isJsonObject, type RawConfig } from "../../config/json.ts"
import { hidden } from "../../config/references.ts"
import {
  AdminTokenEntry,
  KeyRecordEntry,
  PriceEntry,
  RouteEntry,
  settingGroups,
  UpstreamEntry,
  WebhookEntry
} from "../../config/schema.ts"
import { usualDriver } from "../../contracts/drivers.ts"
import { type EntryFields, type FormField, type SettingsField, type SettingsInEffect, shownGroups } from "./Api.ts"
import { writablePaths } from "./patch.ts"

/** The part of a JSON schema that forms use. */
const LeafSchema = Schema.Struct({
  type: Schema.optionalKey(Schema.String),
  minimum: Schema.optionalKey(Schema.Number),
  maximum: Schema.optionalKey(Schema.Number),
  enum: Schema.optionalKey(Schema.Array(Schema.String)),
  description: Schema.optionalKey(Schema.String)
})

const decodeLeaf = Schema.decodeUnknownSync(LeafSchema)
const decodeJson = Schema.decodeUnknownSync(Schema.Json)

const leafOf = (ast: SchemaAST.AST): typeof LeafSchema.Type =>
  decodeLeaf(Schema.toJsonSchemaDocument(Schema.make(ast)).schema)

type FieldType = (typeof FormField.Type)["type"]
type Values = Pick<typeof FormField.Type, "type" | "minimum" | "maximum" | "choices">

const valuesOf = (
  type: FieldType,
  { enum: choices, maximum, minimum }: Partial<typeof LeafSchema.Type>
): Values => ({ type, minimum: minimum ?? null, maximum: maximum ?? null, choices: choices ?? null })

/** A union of a kind of value and of words that stand beside it; numbers that may be texts are decimal numbers. */
const valuesOfUnion = (types: ReadonlyArray<SchemaAST.AST>): Values => {
  if (types.some(SchemaAST.isNumber)) return valuesOf("decimal", {})
  const members = types.map(valuesOfType)
  const plain = members.find(({ type }) => type !== "choice") ?? valuesOf("choice", {})
  const choices = members.flatMap((member) => member.choices ?? [])
  return { ...plain, choices: choices.length === 0 ? null : choices }
}

const valuesOfType = (ast: SchemaAST.AST): Values => {
  if (SchemaAST.isArrays(ast)) {
    const [item] = ast.rest
    const choices = item === undefined ? undefined : leafOf(item).enum
    return choices === undefined ? valuesOf("list", {}) : valuesOf("choices", { enum: choices })
  }
  if (SchemaAST.isObjects(ast)) return valuesOf("map", {})
  const leaf = leafOf(ast)
  if (leaf.enum !== undefined) return valuesOf("choice", leaf)
  if (SchemaAST.isUnion(ast)) return valuesOfUnion(ast.types)
  switch (leaf.type) {
    case "integer":
    case "number":
    case "boolean":
      return valuesOf(leaf.type, leaf)
    default: {
      const format = SchemaAST.resolve(ast)?.["format"]
      return valuesOf(format === "date-time" ? "time" : format === "pem" ? "lines" : "text", {})
    }
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

/** The described fields of a value at a path, with their defaults. Fields without a description are internal state, secrets or older names. */
const describe = (
  path: ReadonlyArray<string>,
  ast: SchemaAST.AST,
  defaults: unknown
): ReadonlyArray<typeof FormField.Type> => {
  if (SchemaAST.isObjects(ast) && ast.propertySignatures.length > 0) {
    return ast.propertySignatures.flatMap(({ name, type }) =>
      describe([...path, String(name)], type, at(defaults, [String(name)]))
    )
  }
  // A description stands at the type or at a check behind it.
  const description = SchemaAST.resolveDescription(ast) ?? leafOf(ast).description
  if (description === undefined) return []
  const field = {
    path: path.join("."),
    ...valuesOfType(ast),
    default: toJson(defaults),
    ...(SchemaAST.resolve(ast)?.["sensitive"] === true ? { sensitive: true } : {}),
    description
  }
  const item = SchemaAST.isArrays(ast) ? ast.rest[0] : undefined
  if (item === undefined || !SchemaAST.isObjects(item)) return [field]
  return [{ ...field, type: "rows" }, ...describe([...path.slice(0, -1), `${path.at(-1)}[]`], item, undefined)]
}

const typeOf = ({ ast }: { readonly ast: SchemaAST.AST }): SchemaAST.AST => SchemaAST.toType(ast)

/** Computed once: schemas do not change. */
let described: ReadonlyArray<typeof FormField.Type> | undefined

const describeAll = (): ReadonlyArray<typeof FormField.Type> =>
  Object.entries(settingGroups).flatMap(([name, group]: [string, Schema.ConstraintDecoder<unknown>]) =>
    describe([name], typeOf(group), Schema.decodeUnknownSync(group)({}))
  )

/** The described fields of an entry. The fields of `example`, without which no entry is valid, have no default. */
const describeEntry = (
  entry: Schema.ConstraintDecoder<unknown>,
  example: RawConfig = {}
): ReadonlyArray<typeof FormField.Type> => {
  const defaults = Schema.decodeUnknownSync(entry)(example)
  return describe([], typeOf(entry), defaults).map((field) =>
    Object.hasOwn(example, field.path) ? { ...field, default: null } : field
  )
}

let entries: EntryFields | undefined

/** The fields of the entries of the configuration's lists and maps. */
export const entryFields = (): EntryFields =>
  entries ??= {
    keys: describeEntry(KeyRecordEntry),
    upstreams: describeEntry(UpstreamEntry, { driver: usualDriver }),
    routes: describeEntry(RouteEntry, { targets: ["default"] }),
    prices: describeEntry(PriceEntry, { input: 0 }),
    tokens: describeEntry(AdminTokenEntry, { id: "a", name: "a", role: "viewer", hash: "0".repeat(64) }),
    webhooks: describeEntry(WebhookEntry, { name: "a", url: "a", secret: "a" })
  }

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
  return described.map((field) => {
    const keys = field.path.split(".")
    return {
      ...field,
      configured: toJson(at(configured, keys)),
      effective: toJson(at(effective, keys)),
      writable: writablePaths.has(field.path)
    }
  })
}

const groupInEffect = (group: object) =>
  Object.fromEntries(
    Object.entries(group instanceof Map ? Object.fromEntries(group) : group).map((
      [name, value]
    ) => [name, value ?? null])
  )

/** The values in effect of the groups that `GET /admin/settings` shows. Its schema leaves out values that are no settings. */
export const groupsInEffect = (config: GatewayConfig) =>
  Object.fromEntries(shownGroups.map((name) => [name, groupInEffect(config[name])])) as SettingsInEffect
