/**
 * The configuration's way to the hosting platform: what is known of it, the sync, and how far both differ (spec "host").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { optional } from "../../domain/optional.ts"
import { bodies, changing, documented, reading } from "../../http/documented.ts"
import { lasting } from "../changes.ts"
import { AdminEdge } from "../edges.ts"

export const HostConfigReply = Schema.Struct({
  has_token: Schema.Boolean,
  /** Empty where none is known. */
  project_id: Schema.String,
  team_id: Schema.NullOr(Schema.String)
}).annotate({ identifier: "HostConfig" })

/** What is empty or `__USE_PRECONFIG__` comes from the environment, else from what was saved by an earlier sync. */
export const HostSyncRequest = Schema.Struct({
  host_token: optional(Schema.String).annotate({ description: "Empty or `__USE_PRECONFIG__`: the environment's." }),
  project_id: optional(Schema.String).annotate({ description: "Else `HOST_PROJECT_ID`." }),
  team_id: optional(Schema.String).annotate({ description: "Else `HOST_TEAM_ID`." }),
  auto_validate: optional(Schema.Boolean).annotate({ description: "Test the accounts first; true by default." }),
  save_credentials: optional(Schema.Boolean).annotate({
    description: "Keep the credentials for the next sync; true by default."
  })
}).annotate({ identifier: "HostSyncRequest" })

export const HostSyncReply = Schema.Struct({
  success: Schema.Boolean,
  /** Accounts whose test was passed. */
  validated_accounts: Schema.Int,
  /** Identifiers of the accounts whose test failed. The configuration is synced all the same. */
  failed_accounts: Schema.Array(Schema.String),
  message: Schema.String,
  /** Where a deployment was started; `null` where the platform does not say its address. */
  deployment_url: Schema.optionalKey(Schema.NullOr(Schema.String)),
  /** The project has no repository: the operator deploys. */
  manual_deploy_required: Schema.optionalKey(Schema.Boolean),
  /** Names of the request's fields that were saved. */
  saved_credentials: Schema.Array(Schema.String),
  ...lasting
}).annotate({ identifier: "HostSync" })

/** Body of a sync that failed: what failed, and what was done before it. */
export const HostSyncFailed = Schema.Struct({
  detail: Schema.String,
  failed_step: Schema.String,
  completed_steps: Schema.Array(Schema.String)
}).annotate({ identifier: "HostSyncFailed" })

/** A draft to compare with what was synced, in the place of the configuration in effect. */
export const HostStatusRequest = Schema.Struct({
  config_override: optional(Schema.Record(Schema.String, Schema.Json))
}).annotate({ identifier: "HostStatusRequest" })

export const HostStatusReply = Schema.Struct({
  /** The configuration in effect is the one that was synced last. */
  synced: Schema.Boolean.annotate({ description: "The configuration is the one that was synced last." }),
  /** Unix seconds; 0 where there was no sync. */
  last_sync_time: Schema.Int.annotate({ description: "Unix seconds." }),
  has_synced_before: Schema.Boolean,
  env_backed: Schema.Boolean,
  /** SHA-256 of the configuration in effect, in hex. */
  config_hash: Schema.String,
  /** Empty where there was no sync. */
  last_synced_hash: Schema.String,
  /** The draft's hash; without a draft that of the configuration in effect. */
  draft_hash: Schema.String,
  /** The draft is not what was synced last. */
  draft_differs: Schema.Boolean.annotate({ description: "The draft differs from what was synced last." })
}).annotate({ identifier: "HostStatus" })

export class AdminHostGroup extends HttpApiGroup.make("admin-host").add(
  HttpApiEndpoint.get("config", "/admin/host/config", { success: HostConfigReply }).annotateMerge(
    documented({ summary: "Read how the configuration is synced", errors: reading })
  ),
  HttpApiEndpoint.post("sync", "/admin/host/sync", { payload: HostSyncRequest, success: HostSyncReply }).annotateMerge(
    documented({
      summary: "Sync the configuration to the hosting platform",
      errors: [...changing, "upstream_error"],
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
      example: { config_override: { keys: ["a-business-key"] } }
    }))
).middleware(AdminEdge).annotate(OpenApi.Description, "Operators: sync to the hosting platform") {}
