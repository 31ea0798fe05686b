/**
 * The static configuration: reading, changing, importing and exporting it (spec "Configuration object").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { optional } from "../../domain/schemas.ts"
import { changing, documented, reading } from "../../http/documented.ts"
import { AccountView } from "../accounts/Api.ts"
import { endedKey, lasting, Switch } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

const Mapping = Schema.Struct({ fast: Schema.String, slow: Schema.String })

/** Reply of `GET /admin/config`. */
export const ConfigReply = Schema.Struct({
  keys: Schema.Array(Schema.String),
  generated_key: Schema.optionalKey(Schema.String).annotate({
    description: "The generated key of a start without keys; it ends when a key is added."
  }),
  env_backed: Schema.Boolean.annotate({ description: "The environment is the source, so changes stay in memory." }),
  env_source_present: Schema.Boolean.annotate({ description: "`GATEWAY_CONFIG_JSON` is set." }),
  env_writeback_enabled: Schema.Boolean.annotate({
    description: "Changes are written to the file although the environment supplied the configuration."
  }),
  env_locked: Schema.Boolean.annotate({ description: "`GATEWAY_LOCKED` is set." }),
  config_path: Schema.String.annotate({ description: "Path of the config file." }),
  locked: Schema.Boolean.annotate({ description: "Changes are refused with `locked`." }),
  config_writable: Schema.Boolean.annotate({
    description: "Changes outlive the process; with a shared store, also the store and all nodes."
  }),
  accounts: Schema.optionalKey(Schema.Array(AccountView)).annotate({
    description: "Without passwords and tokens. Absent with `accounts=false`."
  }),
  msgcompat_mapping: Mapping.annotate({
    description: "Native models behind the fast and slow models of the Messages API."
  })
}).annotate({ identifier: "Config" })

/** An account in a list; a configured account keeps absent fields. */
const ListedAccount = Schema.Struct({
  email: Schema.optionalKey(Schema.NullOr(Schema.String)),
  mobile: Schema.optionalKey(Schema.NullOr(Schema.String)),
  password: Schema.optionalKey(Schema.NullOr(Schema.String)),
  token: Schema.optionalKey(Schema.NullOr(Schema.String)),
  disabled: Schema.optionalKey(Schema.NullOr(Schema.Boolean)),
  note: Schema.optionalKey(Schema.NullOr(Schema.String)),
  upstream: Schema.optionalKey(Schema.NullOr(Schema.String)),
  proxy: Schema.optionalKey(Schema.NullOr(Schema.String)),
  /** As in `GET /admin/config`; identifies an account that has only a token. */
  identifier: Schema.optionalKey(Schema.String)
})

/** Body of `POST /admin/config`: a given list replaces the configured one. */
export const ConfigRequest = Schema.Struct({
  keys: Schema.optionalKey(Schema.Array(Schema.String)),
  accounts: Schema.optionalKey(Schema.Array(ListedAccount)),
  msgcompat_mapping: optional(Schema.Struct({ fast: optional(Schema.String), slow: optional(Schema.String) }))
}).annotate({ identifier: "ConfigRequest" })

/** Ignored fields of an import, with the probably intended names. */
const Warnings = Schema.Array(Schema.String)

const ConfigSaved = Schema.Struct({
  success: Schema.Boolean,
  message: Schema.String,
  total_keys: Schema.Int,
  total_accounts: Schema.Int,
  warnings: Warnings,
  ...endedKey,
  ...lasting
})

const JsonObject = Schema.Record(Schema.String, Schema.Json)
const Mode = Schema.Literals(["merge", "replace"])

/** A configuration in a wrapper. */
export const ImportWrapper = Schema.Struct({ config: JsonObject, mode: Schema.optionalKey(Mode) })

/** Body of an import: a configuration, or one in a wrapper. */
const ImportRequest = Schema.Union([ImportWrapper, JsonObject]).annotate({ identifier: "ImportRequest" })

const imported = {
  imported_keys: Schema.Int,
  imported_accounts: Schema.Int,
  warnings: Warnings,
  ...endedKey,
  ...lasting
}

/** How a list of the configuration changes. */
export const ListChanges = Schema.Struct({
  before: Schema.Int.annotate({ description: "Entries before the import." }),
  after: Schema.Int.annotate({ description: "Entries after the import." }),
  added: Schema.Int,
  changed: Schema.Int,
  removed: Schema.Int,
  removed_names: Schema.Array(Schema.String).annotate({ description: "Names of removed entries, at most 100." })
})

/** What an import changes. */
export const ImportChanges = Schema.Struct({
  keys: ListChanges,
  accounts: ListChanges,
  settings: Schema.Array(Schema.String).annotate({ description: "Groups of settings whose values change." })
}).annotate({ identifier: "ImportChanges" })

const ImportReply = Schema.Struct({
  success: Schema.Boolean,
  mode: Mode,
  message: Schema.String,
  ...imported,
  changes: ImportChanges
})

/** A backup with passwords and configured tokens, without tokens from logins. */
export const ExportReply = Schema.Struct({
  success: Schema.Boolean,
  config: JsonObject,
  json: Schema.String,
  base64: Schema.String
}).annotate({ identifier: "ConfigExport" })

/** Body of `POST /admin/import`. */
export const ListsRequest = Schema.Struct({
  keys: Schema.optionalKey(Schema.Array(Schema.String)),
  accounts: Schema.optionalKey(Schema.Array(ListedAccount))
}).annotate({ identifier: "ListsImport" })

const ListsReply = Schema.Struct({ success: Schema.Boolean, ...imported })

export class AdminConfigGroup extends HttpApiGroup.make("admin-config").add(
  HttpApiEndpoint.get("get", "/admin/config", {
    query: { accounts: Schema.optionalKey(Switch) },
    success: ConfigReply
  }).annotateMerge(documented({
    summary: "Read the configuration",
    description: "`accounts=false` leaves out the accounts, which `GET /admin/accounts` lists in pages.",
    errors: [...reading, "invalid_request"]
  })),
  HttpApiEndpoint.post("set", "/admin/config", { payload: ConfigRequest, success: ConfigSaved }).annotateMerge(
    documented({
      summary: "Replace keys, accounts or the model mapping",
      errors: changing,
      example: { msgcompat_mapping: { fast: "upstream-chat", slow: "upstream-reasoner" } }
    })
  ),
  HttpApiEndpoint.post("import", "/admin/config/import", {
    query: { mode: Schema.optionalKey(Schema.String), dry_run: Schema.optionalKey(Switch) },
    payload: ImportRequest,
    success: ImportReply
  }).annotateMerge(documented({
    summary: "Import a configuration",
    description: "All or nothing. `mode` is `merge` (the default) or `replace`. `dry_run=true` changes nothing.",
    errors: changing,
    example: { config: { model_aliases: { "my-model": "upstream-reasoner" } } }
  })),
  HttpApiEndpoint.get("export", "/admin/config/export", { success: ExportReply }).annotateMerge(
    documented({ summary: "Export the configuration, secrets included", errors: reading })
  ),
  HttpApiEndpoint.get("exportShort", "/admin/export", { success: ExportReply }).annotateMerge(documented({
    summary: "Export the configuration, secrets included (short path)",
    errors: reading
  })),
  HttpApiEndpoint.post("importLists", "/admin/import", { payload: ListsRequest, success: ListsReply }).annotateMerge(
    documented({
      summary: "Add keys and accounts",
      errors: changing,
      example: { accounts: [{ email: "user@example.com", password: "secret" }] }
    })
  )
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: configuration") {}
