/**
 * Routes: the models that several upstreams serve, with their targets.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { RouteEntry, RouteTargets } from "../../config/schema.ts"
import { changing, documented, reading } from "../../http/documented.ts"
import { lasting, revised } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

const Routes = Schema.Record(Schema.String, Schema.toType(RouteEntry).annotate({ identifier: "Route" }))

const RoutesReply = Schema.Struct({ routes: Routes, revision: Schema.String }).annotate({ identifier: "Routes" })

/** Body of `PUT /admin/routes`: all routes, each with its targets alone or with further fields. */
export const RoutesRequest = Schema.Struct({
  routes: Schema.Record(
    Schema.String,
    Schema.Union([Schema.toEncoded(RouteTargets), Schema.toEncoded(RouteEntry)])
  )
}).annotate({ identifier: "RoutesRequest" })

const RoutesSaved = Schema.Struct({ success: Schema.Boolean, routes: Routes, ...lasting })

export class AdminRoutesGroup extends HttpApiGroup.make("admin-routes").add(
  HttpApiEndpoint.get("get", "/admin/routes", { success: RoutesReply }).annotateMerge(documented({
    summary: "Read the routes",
    description: "`revision` is for `If-Match`.",
    errors: reading
  })),
  HttpApiEndpoint.put("set", "/admin/routes", { ...revised, payload: RoutesRequest, success: RoutesSaved })
    .annotateMerge(documented({
      summary: "Replace the routes",
      description: "The order is that of the list of models. A 400 lists all `faults`.",
      errors: changing,
      example: { routes: { qwen3: { targets: ["default/upstream-chat"], wait: 2 } } }
    }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: routes") {}
