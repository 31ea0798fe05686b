/**
 * Runtime settings and the admin password (spec "Runtime settings").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { settingGroups } from "../../config/schema.ts"
import { settingsOf, SettingsPatch } from "../../config/settings.ts"
import { changing, documented, reading } from "../../http/documented.ts"
import { lasting, revised } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

/** Groups whose values in effect are in the reply of `GET /admin/settings`. */
export const shownGroups = [
  "runtime",
  "compat",
  "responses",
  "embeddings",
  "auto_delete",
  "msgcompat_mapping",
  "model_aliases"
] as const

type ShownGroup = typeof shownGroups[number]
type Groups = typeof settingGroups

/** The one setting of these groups that may be unset, which is shown as `null`. */
const unsettable = "key_max_inflight"

type InEffect<Group> = {
  readonly [Field in keyof Group as Exclude<Field, "sessions">]-?:
    | Exclude<Group[Field], undefined>
    | (Field extends typeof unsettable ? null : never)
}

/** A setting in effect. Without a default it follows from others, and may exceed the range that the file allows. */
const fieldInEffect = (name: string, field: Schema.Top): Schema.Top => {
  const type = Schema.toType(field)
  if (!SchemaAST.isOptional(type.ast)) return type
  const { schema } = field as Schema.optionalKey<Schema.Top>
  if (!SchemaAST.isNumber(schema.ast)) return schema
  const description = SchemaAST.resolveDescription(schema.ast)!
  return (name === unsettable ? Schema.NullOr(Schema.Int) : Schema.Int).annotate({ description })
}

const groupInEffect = (name: ShownGroup): Schema.Top => {
  const group: Schema.Top & { readonly fields?: Readonly<Record<string, Schema.Top>> } = settingGroups[name]
  const { fields } = group
  return fields === undefined
    ? Schema.toType(group)
    : Schema.Struct(Object.fromEntries(settingsOf(name)!.map((field) => [field, fieldInEffect(field, fields[field]!)])))
}

/** The values in effect of the shown groups. */
export type SettingsInEffect = { readonly [Name in ShownGroup]: InEffect<Groups[Name]["Type"]> }

const groupsInEffect = Object.fromEntries(shownGroups.map((name) => [name, groupInEffect(name)])) as {
  readonly [Name in ShownGroup]: Schema.Codec<SettingsInEffect[Name]>
}

/** Reply of `GET /admin/settings`. */
const SettingsReply = Schema.Struct({
  success: Schema.Boolean,
  env_backed: Schema.Boolean,
  needs_host_sync: Schema.Boolean.annotate({
    description: "Only a sync to the hosting platform keeps the latest changes."
  }),
  admin: Schema.Struct({
    has_password_hash: Schema.Boolean,
    jwt_expire_hours: Schema.Int,
    jwt_valid_after_unix: Schema.Int,
    default_password_warning: Schema.Boolean
  }),
  ...groupsInEffect
}).annotate({ identifier: "Settings" })

/** What forms know of a field of the configuration. */
const formField = {
  /** Dotted: `runtime.account_max_inflight`. The field of an entry begins at the entry, and `[]` stands for each row of a list. */
  path: Schema.String,
  type: Schema.Literals([
    "integer",
    "number",
    "decimal",
    "boolean",
    "text",
    "lines",
    "time",
    "choice",
    "choices",
    "list",
    "rows",
    "map"
  ]).annotate({
    description:
      "`decimal`: a number or a text with every digit; `lines`: a text of several lines; `choices`: some of the choices; " +
      "`rows`: a list of objects, whose fields follow."
  }),
  minimum: Schema.NullOr(Schema.Finite),
  maximum: Schema.NullOr(Schema.Finite),
  choices: Schema.NullOr(Schema.Array(Schema.String)).annotate({
    description: "The values of a choice; of other types, words that may stand in place of a value."
  }),
  /** `null` if the value follows from other settings. */
  default: Schema.Json,
  sensitive: Schema.optionalKey(Schema.Boolean).annotate({ description: "Whether its values are secrets." }),
  description: Schema.String
}

/** A field of an entry, as forms use it. */
export const FormField = Schema.Struct(formField).annotate({ identifier: "FormField" })

/** One setting, as forms use it. */
export const SettingsField = Schema.Struct({
  ...formField,
  /** `null` if it is not set. */
  configured: Schema.Json,
  effective: Schema.Json,
  /** Whether `PUT /admin/settings` accepts it; otherwise only the file sets it. */
  writable: Schema.Boolean
}).annotate({ identifier: "SettingsField" })

const EntryFields = Schema.Struct({
  keys: Schema.Array(FormField),
  upstreams: Schema.Array(FormField),
  routes: Schema.Array(FormField),
  prices: Schema.Array(FormField),
  tokens: Schema.Array(FormField),
  webhooks: Schema.Array(FormField)
}).annotate({ identifier: "EntryFields" })

export type EntryFields = typeof EntryFields.Type

/** Reply of `GET /admin/settings/fields`; `revision` is for `If-Match`. */
const SettingsFieldsReply = Schema.Struct({
  revision: Schema.String,
  fields: Schema.Array(SettingsField),
  entries: EntryFields.annotate({
    description:
      "The fields of each entry: of the record of a key, an upstream, a route, a price, a token and a webhook."
  }),
  warnings: Schema.Array(Schema.String).annotate({
    description: "Settings that are valid and do not do what they say, each with its place, and what to do."
  })
}).annotate({ identifier: "SettingsFields" })

const SettingsSaved = Schema.Struct({
  success: Schema.Boolean,
  message: Schema.String,
  env_backed: Schema.Boolean,
  ...lasting
})

/** The new password, under either name, and the current one. */
const PasswordRequest = Schema.Struct({
  current_password: Schema.optionalKey(Schema.NullOr(Schema.String)).annotate({
    description: "The current admin key or password. Required with the session cookie."
  }),
  new_password: Schema.optionalKey(Schema.NullOr(Schema.String)),
  password: Schema.optionalKey(Schema.NullOr(Schema.String))
}).annotate({ identifier: "PasswordRequest" })

const PasswordReply = Schema.Struct({
  success: Schema.Boolean,
  message: Schema.String,
  force_relogin: Schema.Boolean,
  jwt_valid_after_unix: Schema.Int,
  ...lasting
})

export class AdminSettingsGroup extends HttpApiGroup.make("admin-settings").add(
  HttpApiEndpoint.get("get", "/admin/settings", { success: SettingsReply }).annotateMerge(
    documented({ summary: "Read the runtime settings", errors: reading })
  ),
  HttpApiEndpoint.get("fields", "/admin/settings/fields", { success: SettingsFieldsReply }).annotateMerge(documented({
    summary: "List every setting with its range, default and values",
    description: "`revision` identifies the configuration that has these values.",
    errors: reading
  })),
  HttpApiEndpoint.put("set", "/admin/settings", {
    ...revised,
    payload: SettingsPatch,
    success: SettingsSaved
  }).annotateMerge(documented({
    summary: "Change runtime settings",
    description:
      "Absent groups and fields stay as they are. A 400 lists all `faults`. With `If-Match` and a revision of " +
      "`GET /admin/settings/fields` the response is 409 if the configuration has changed since.",
    errors: changing,
    example: { runtime: { account_max_inflight: 4 }, compat: { strip_reference_markers: true } }
  })),
  HttpApiEndpoint.post("password", "/admin/settings/password", { payload: PasswordRequest, success: PasswordReply })
    .annotateMerge(documented({
      summary: "Set the admin password",
      description: "Invalidates all earlier JWTs. With the session cookie the current password is required.",
      errors: changing,
      // The example is refused, so that sending it unchanged does not set a public password.
      example: { current_password: "", new_password: "" }
    }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: runtime settings and password") {}
