/**
 * The running system: version and latest release (spec "Versioning"), nodes and their store, and the self-test (spec "POST
 * /admin/test").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { optional } from "../../domain/schemas.ts"
import { bodies, documented, reading } from "../../http/documented.ts"
import { AdminMiddleware } from "../middleware.ts"

/** Unknown fields of the latest release are `null`, and `check_error` says why. */
const VersionReply = Schema.Struct({
  success: Schema.Boolean,
  current_version: Schema.String,
  current_tag: Schema.String,
  /** The file that has the version. */
  source: Schema.String,
  /** The build and its platform. `commit` and `date` are `null` except in releases. */
  build: Schema.Struct({
    commit: Schema.NullOr(Schema.String),
    date: Schema.NullOr(Schema.String),
    node: Schema.String,
    platform: Schema.String,
    form: Schema.Literals(["source", "bundle", "package", "executable"])
  }),
  checked_at: Schema.String.annotate({ description: "ISO 8601." }),
  latest_tag: Schema.NullOr(Schema.String),
  latest_version: Schema.NullOr(Schema.String),
  release_url: Schema.NullOr(Schema.String),
  published_at: Schema.NullOr(Schema.String),
  has_update: Schema.Boolean,
  check_error: Schema.optionalKey(Schema.String).annotate({ description: "Why the latest release is unknown." })
}).annotate({ identifier: "Version" })

export class AdminVersionGroup extends HttpApiGroup.make("admin-version").add(
  HttpApiEndpoint.get("version", "/admin/version", { success: VersionReply }).annotateMerge(documented({
    summary: "Read the running version and the latest release",
    description: "HTTP 200 with `check_error` if the lookup of the release failed.",
    errors: reading
  }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: version") {}

/** Times are Unix milliseconds. */
const NodesReply = Schema.Struct({
  success: Schema.Boolean,
  /** The node that replies. */
  node: Schema.String,
  /** `null` without a shared store. */
  store: Schema.NullOr(Schema.Struct({
    state: Schema.Literals(["up", "lost"]),
    /** Without credentials. */
    url: Schema.String,
    version: Schema.String,
    /** The revision of the configuration in effect at this node. */
    revision: Schema.Int,
    round_trip_ms: Schema.Number,
    since: Schema.Int,
    detail: Schema.optionalKey(Schema.String).annotate({
      description: "A problem of the server's settings, such as an eviction policy that may delete keys."
    })
  })),
  nodes: Schema.Array(Schema.Struct({
    id: Schema.String,
    self: Schema.Boolean,
    state: Schema.Literals(["up", "draining", "late"]),
    version: Schema.String,
    started_at: Schema.Int,
    /** Milliseconds since its last heartbeat. */
    last_beat_ms: Schema.Int,
    in_use: Schema.Int,
    waiting: Schema.Int,
    config_revision: Schema.Int
  }))
}).annotate({ identifier: "Nodes" })

export class AdminNodesGroup extends HttpApiGroup.make("admin-nodes").add(
  HttpApiEndpoint.get("nodes", "/admin/nodes", { success: NodesReply }).annotateMerge(documented({
    summary: "Read the nodes of the gateway, and the state of their store",
    description: "`store` is `null` without a shared store; while it is unavailable, `nodes` has only this node.",
    errors: reading
  }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: nodes that are one gateway") {}

/** Without `api_key` the first configured key is used. */
const SelfTestRequest = Schema.Struct({
  model: optional(Schema.String),
  message: optional(Schema.String),
  api_key: optional(Schema.String)
}).annotate({ identifier: "SelfTestRequest" })

const SelfTestReply = Schema.Struct({
  success: Schema.Boolean,
  status_code: Schema.Int,
  /** The reply as a caller gets it: JSON, or a string if it is not JSON. */
  response: Schema.Json
}).annotate({ identifier: "SelfTestReply" })

export class AdminSelfTestGroup extends HttpApiGroup.make("admin-self-test").add(
  HttpApiEndpoint.post("test", "/admin/test", { payload: SelfTestRequest, success: SelfTestReply }).annotateMerge(
    documented({
      summary: "Send a request through the gateway itself",
      errors: [...reading, ...bodies],
      mayBeEmpty: true,
      example: { model: "upstream-chat", message: "Hello" }
    })
  )
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: self-test") {}
