/**
 * Which settings operators may change at run time: every described field of the groups named here. A field that is added to
 * one of them is in forms, in what can be written, in the documents and in what is shown.
 */
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { settingGroups } from "./schema.ts"

/** The groups whose settings can be written, in the order in which changes are laid over a configuration. */
export const writableGroups = [
  "admin",
  "runtime",
  "compat",
  "responses",
  "embeddings",
  "auto_delete",
  "msgcompat_mapping",
  "model_aliases",
  "captures",
  "requests"
] as const

type WritableGroup = typeof writableGroups[number]

type Groups = typeof settingGroups

const fieldsOf = (group: Schema.Top): Readonly<Record<string, Schema.Top>> | undefined =>
  "fields" in group ? group.fields as Readonly<Record<string, Schema.Top>> : undefined

/**
 * The settings of a group: its fields that have words. Without them a field is no setting but what the gateway itself keeps
 * there, a secret, or an older name. `undefined` where the names of the fields are the operator's.
 */
export const settingsOf = (name: WritableGroup): ReadonlyArray<string> | undefined => {
  const fields = fieldsOf(settingGroups[name])
  return fields && Object.keys(fields).filter((field) => SchemaAST.resolveDescription(fields[field]!.ast) !== undefined)
}

/** A change of settings: what it does not name stays, `null` unsets. */
export type SettingsPatch = {
  readonly [Name in WritableGroup]?:
    | { readonly [Field in keyof Groups[Name]["Type"]]?: Groups[Name]["Type"][Field] | null }
    | null
}

const nullable = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** A field as values are, without what files may leave out. */
const valueOf = (field: Schema.Top): Schema.Top => Schema.make(SchemaAST.toType(field.ast))

const patchOf = (name: WritableGroup): Schema.Top => {
  const fields = fieldsOf(settingGroups[name])
  if (fields === undefined) return valueOf(settingGroups[name])
  const names = [...settingsOf(name)!, ...(name === "auto_delete" ? ["sessions"] : [])]
  return Schema.Struct(Object.fromEntries(names.map((field) => [field, nullable(valueOf(fields[field]!))])))
}

/** Changes of settings as a schema, for documents and clients; what comes is checked by the configuration's own schemas. */
export const SettingsPatch = Schema.Struct(
  Object.fromEntries(writableGroups.map((name) => [name, nullable(patchOf(name))]))
).annotate({ identifier: "SettingsRequest" }) as unknown as Schema.Codec<SettingsPatch>
