/**
 * The nodes that are one gateway, and the store that they share.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Schema from "effect/Schema"
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
    since: Schema.Int
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
  HttpApiEndpoint.get("nodes", "/admin/nodes", { success: NodesReply })
).middleware(AdminEdge) {}
