/**
 * `GET /metrics` as a contract.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import { AdminOpenEdge } from "../../admin/edges.ts"

export class MetricsGroup extends HttpApiGroup.make("metrics").add(
  HttpApiEndpoint.get("metrics", "/metrics", {
    success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain" }))
  })
).middleware(AdminOpenEdge) {}
