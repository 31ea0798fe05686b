/**
 * The nodes that are one gateway, and the store that they share.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { documented, reading } from "../../http/documented.ts"
import { AdminEdge } from "../edges.ts"

/** Times are Unix milliseconds. */
export const NodesReply = Schema.Struct({
  success: Schema.Boolean,
  /** The node that answers. */
  node: Schema.String,
  /** `null` without a store. */
  store: Schema.NullOr(Schema.Struct({
    state: Schema.Literals(["up", "lost"]),
    /** Without credentials. */
    url: Schema.String,
    version: Schema.String,
    /** Of the configuration in effect here. */
    revision: Schema.Int,
    round_trip_ms: Schema.Number,
    since: Schema.Int,
    detail: Schema.optionalKey(Schema.String).annotate({
      description: "What is wrong with how the server is set up, such as that it may throw keys away."
    })
  })),
  nodes: Schema.Array(Schema.Struct({
    id: Schema.String,
    self: Schema.Boolean,
    state: Schema.Literals(["up", "draining", "late"]),
    version: Schema.String,
    started_at: Schema.Int,
    /** Milliseconds since it showed life. */
    last_beat_ms: Schema.Int,
    in_use: Schema.Int,
    waiting: Schema.Int,
    config_revision: Schema.Int
  }))
}).annotate({ identifier: "Nodes" })

export class AdminNodesGroup extends HttpApiGroup.make("admin-nodes").add(
  HttpApiEndpoint.get("nodes", "/admin/nodes", { success: NodesReply }).annotateMerge(documented({
    summary: "Read which nodes are this gateway, and how this one finds their store",
    description: "`store` is `null` where there is none; while it is lost, `nodes` has this node only.",
    errors: reading
  }))
).middleware(AdminEdge).annotate(OpenApi.Description, "Operators: nodes that are one gateway") {}
