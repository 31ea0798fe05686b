/**
 * `GET /metrics` as a contract.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { AdminOpenEdge } from "../../admin/edges.ts"
import { documented, reading } from "../../http/documented.ts"

export class MetricsGroup extends HttpApiGroup.make("metrics").add(
  HttpApiEndpoint.get("metrics", "/metrics", {
    success: Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/plain" }))
  }).annotateMerge(documented({
    summary: "Metrics in the Prometheus text format",
    description: "Needs no credential where `metrics.public` is true.",
    access: "key",
    errors: [...reading, "rate_limit_exceeded"]
  }))
).middleware(AdminOpenEdge).annotate(OpenApi.Description, "Metrics") {}
