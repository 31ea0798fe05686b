/**
 * Runtime settings and the admin password (spec "Runtime settings").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { settingGroups } from "../../config/schema.ts"
import { SettingsPatch } from "../../config/settings.ts"
import { changing, documented, reading } from "../../http/documented.ts"
import { lasting } from "../changes.ts"
import { AdminEdge } from "../edges.ts"

const { compat, embeddings, model_aliases, msgcompat_mapping, responses, runtime } = settingGroups

/** Reply of `GET /admin/settings`: the values in effect. */
export const SettingsReply = Schema.Struct({
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
  runtime: Schema.Struct({
    ...Struct.map(runtime.fields, Schema.toType),
    account_max_inflight: Schema.Int,
    account_max_queue: Schema.Int,
    global_max_inflight: Schema.Int,
    key_max_inflight: Schema.NullOr(Schema.Int)
  }),
  compat: Schema.toType(compat),
  responses: Schema.toType(responses),
  embeddings: Schema.toType(embeddings),
  auto_delete: Schema.Struct({ mode: Schema.Literals(["none", "single", "all"]) }),
  msgcompat_mapping: Schema.toType(msgcompat_mapping),
  model_aliases: Schema.toType(model_aliases)
}).annotate({ identifier: "Settings" })

/** One setting as a form needs it. */
export const SettingsField = Schema.Struct({
  /** Dotted: `runtime.account_max_inflight`. */
  path: Schema.String,
  type: Schema.Literals(["integer", "number", "boolean", "text", "choice", "map"]),
  minimum: Schema.NullOr(Schema.Finite),
  maximum: Schema.NullOr(Schema.Finite),
  choices: Schema.NullOr(Schema.Array(Schema.String)),
  /** `null` where the value follows from others. */
  default: Schema.Json,
  /** `null` where it is not set. */
  configured: Schema.Json,
  effective: Schema.Json,
  /** Whether `PUT /admin/settings` takes it; else it is set in the file. */
  writable: Schema.Boolean,
  description: Schema.String
}).annotate({ identifier: "SettingsField" })

/** Reply of `GET /admin/settings/fields`; `revision` names the configuration, for `If-Match`. */
export const SettingsFieldsReply = Schema.Struct({
  revision: Schema.String,
  fields: Schema.Array(SettingsField)
}).annotate({ identifier: "SettingsFields" })

export const SettingsSaved = Schema.Struct({
  success: Schema.Boolean,
  message: Schema.String,
  env_backed: Schema.Boolean,
  ...lasting
})

/** The password under either name, and the one in force. */
export const PasswordRequest = Schema.Struct({
  current_password: Schema.optionalKey(Schema.NullOr(Schema.String)).annotate({
    description: "The admin key or password in force. Required where the session cookie is the credential."
  }),
  new_password: Schema.optionalKey(Schema.NullOr(Schema.String)),
  password: Schema.optionalKey(Schema.NullOr(Schema.String))
}).annotate({ identifier: "PasswordRequest" })

export const PasswordReply = Schema.Struct({
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
    description: "Made from the configuration's schemas. `revision` names the configuration that the values are of.",
    errors: reading
  })),
  HttpApiEndpoint.put("set", "/admin/settings", {
    // A revision of `GET /admin/settings/fields`: 409 where the configuration is another one by now.
    headers: { "if-match": Schema.optionalKey(Schema.String) },
    payload: SettingsPatch,
    success: SettingsSaved
  }).annotateMerge(documented({
    summary: "Change runtime settings",
    description:
      "Groups and fields that are left out stay as they are. A 400 lists all `faults`. With `If-Match` and a " +
      "revision of `GET /admin/settings/fields` it is a 409 where the configuration is another one by now.",
    errors: changing,
    example: { runtime: { account_max_inflight: 4 }, compat: { strip_reference_markers: true } }
  })),
  HttpApiEndpoint.post("password", "/admin/settings/password", { payload: PasswordRequest, success: PasswordReply })
    .annotateMerge(documented({
      summary: "Set the admin password",
      description: "Invalidates every JWT that was issued before. A browser's session gives the present password too.",
      errors: changing,
      // An example that is sent as it stands must not set a password that everybody can read.
      example: { current_password: "", new_password: "" }
    }))
).middleware(AdminEdge).annotate(OpenApi.Description, "Operators: runtime settings and password") {}
