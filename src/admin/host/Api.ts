/**
 * The sync of the configuration to the hosting platform (spec "host").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { optional } from "../../domain/schemas.ts"
import { bodies, changing, documented, reading } from "../../http/documented.ts"
import { lasting } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

export const HostConfigReply = Schema.Struct({
  has_token: Schema.Boolean,
  /** Empty if unknown. */
  project_id: Schema.String,
  team_id: Schema.NullOr(Schema.String)
}).annotate({ identifier: "HostConfig" })

/** An empty field, or `__USE_PRECONFIG__`, is taken from the environment, else from the credentials of an earlier sync. */
export const HostSyncRequest = Schema.Struct({
  host_token: optional(Schema.String).annotate({
    description: "Empty or `__USE_PRECONFIG__`: the token of the environment or of an earlier sync."
  }),
  project_id: optional(Schema.String).annotate({
    description: "Default: `HOST_PROJECT_ID`, or that of an earlier sync."
  }),
  team_id: optional(Schema.String).annotate({ description: "Default: `HOST_TEAM_ID`, or that of an earlier sync." }),
  auto_validate: optional(Schema.Boolean).annotate({ description: "Test the accounts first; true by default." }),
  save_credentials: optional(Schema.Boolean).annotate({
    description: "Keep the credentials for the next sync; true by default."
  })
}).annotate({ identifier: "HostSyncRequest" })

export const HostSyncReply = Schema.Struct({
  success: Schema.Boolean,
  /** Accounts that passed their test. */
  validated_accounts: Schema.Int,
  /** Identifiers of the accounts that failed their test; they do not prevent the sync. */
  failed_accounts: Schema.Array(Schema.String),
  message: Schema.String,
  /** Address of the started deployment; `null` if the platform does not return it. */
  deployment_url: Schema.optionalKey(Schema.NullOr(Schema.String)),
  /** The project has no repository, so the operator must deploy it. */
  manual_deploy_required: Schema.optionalKey(Schema.Boolean),
  /** Names of the saved fields of the request. */
  saved_credentials: Schema.Array(Schema.String),
  ...lasting
}).annotate({ identifier: "HostSync" })

/** Error body of a sync: the failed step, and the steps before it. */
export const HostSyncFailed = Schema.Struct({
  detail: Schema.String,
  failed_step: Schema.String,
  completed_steps: Schema.Array(Schema.String)
}).annotate({ identifier: "HostSyncFailed" })

/** A draft to compare with the last sync, instead of the configuration in effect. */
export const HostStatusRequest = Schema.Struct({
  config_override: optional(Schema.Record(Schema.String, Schema.Json))
}).annotate({ identifier: "HostStatusRequest" })

export const HostStatusReply = Schema.Struct({
  synced: Schema.Boolean.annotate({ description: "The configuration equals that of the last sync." }),
  /** 0 without an earlier sync. */
  last_sync_time: Schema.Int.annotate({ description: "Unix seconds." }),
  has_synced_before: Schema.Boolean,
  env_backed: Schema.Boolean,
  /** SHA-256 of the configuration in effect, in hex. */
  config_hash: Schema.String,
  /** Empty without an earlier sync. */
  last_synced_hash: Schema.String,
  /** Hash of the draft; without a draft, of the configuration in effect. */
  draft_hash: Schema.String,
  draft_differs: Schema.Boolean.annotate({ description: "The draft differs from the last sync." })
}).annotate({ identifier: "HostStatus" })

export class AdminHostGroup extends HttpApiGroup.make("admin-host").add(
  HttpApiEndpoint.get("config", "/admin/host/config", { success: HostConfigReply }).annotateMerge(
    documented({ summary: "Read how the configuration is synced", errors: reading })
  ),
  HttpApiEndpoint.post("sync", "/admin/host/sync", { payload: HostSyncRequest, success: HostSyncReply }).annotateMerge(
    documented({
      summary: "Sync the configuration to the hosting platform",
      errors: [...changing, "upstream_error"],
      mayBeEmpty: true,
      example: { host_token: "__USE_PRECONFIG__", auto_validate: true }
    })
  ),
  HttpApiEndpoint.get("status", "/admin/host/status", { success: HostStatusReply }).annotateMerge(
    documented({ summary: "Read whether the configuration is synced", errors: reading })
  ),
  HttpApiEndpoint.post("compare", "/admin/host/status", { payload: HostStatusRequest, success: HostStatusReply })
    .annotateMerge(documented({
      summary: "Compare a draft configuration with the synced one",
      errors: [...reading, ...bodies],
      mayBeEmpty: true,
      example: { config_override: { keys: ["a-gateway-key"] } }
    }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: sync to the hosting platform") {}
