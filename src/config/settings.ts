/**
 * Settings that operators may change at run time: every described field of the groups named here. A field added to one of
 * these groups appears in forms, patches, documents and responses.
 */
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { settingGroups } from "./schema.ts"

/** Writable groups, in the order in which a patch is applied. */
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
 * The settings of a group: its fields with a description. A field without one is internal state, a secret, or an older
 * name. `undefined` for a group with operator-defined field names.
 */
export const settingsOf = (name: WritableGroup): ReadonlyArray<string> | undefined => {
  const fields = fieldsOf(settingGroups[name])
  // What a lock refuses cannot lift it, so it is set in the file alone.
  return fields &&
    Object.keys(fields).filter((field) =>
      field !== "locked" && SchemaAST.resolveDescription(fields[field]!.ast) !== undefined
    )
}

/** A patch of settings: absent fields stay, `null` unsets a field. */
export type SettingsPatch = {
  readonly [Name in WritableGroup]?:
    | { readonly [Field in keyof Groups[Name]["Type"]]?: Groups[Name]["Type"][Field] | null }
    | null
}

const nullable = <S extends Schema.Top>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** The decoded type of a field, without the file's defaults. */
const valueOf = (field: Schema.Top): Schema.Top => Schema.make(SchemaAST.toType(field.ast))

const patchOf = (name: WritableGroup): Schema.Top => {
  const fields = fieldsOf(settingGroups[name])
  if (fields === undefined) return valueOf(settingGroups[name])
  const names = [...settingsOf(name)!, ...(name === "auto_delete" ? ["sessions"] : [])]
  return Schema.Struct(Object.fromEntries(names.map((field) => [field, nullable(valueOf(fields[field]!))])))
}

/** The schema of a patch, for documents and clients. The configuration's own schemas validate the values. */
export const SettingsPatch = Schema.Struct(
  Object.fromEntries(writableGroups.map((name) => [name, nullable(patchOf(name))]))
).annotate({ identifier: "SettingsRequest" }) as unknown as Schema.Codec<SettingsPatch>
