/**
 * Routes: the models that several upstreams serve, with their targets.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { mostTargets, RouteEntry, RouteTargets } from "../../config/schema.ts"
import { bodies, changing, documented, reading } from "../../http/documented.ts"
import { lasting, revised } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

const Routes = Schema.Record(Schema.String, Schema.toType(RouteEntry).annotate({ identifier: "Route" }))

const RoutesReply = Schema.Struct({ routes: Routes, revision: Schema.String }).annotate({ identifier: "Routes" })

/** Body of `PUT /admin/routes`: all routes, each with its targets alone or with other fields. */
export const RoutesRequest = Schema.Struct({
  routes: Schema.Record(
    Schema.String,
    Schema.Union([Schema.toEncoded(RouteTargets), Schema.toEncoded(RouteEntry)])
  )
}).annotate({ identifier: "RoutesRequest" })

const RoutesSaved = Schema.Struct({ success: Schema.Boolean, routes: Routes, ...lasting })

/** Body of `POST /admin/routes/rehearse`. */
export const RehearsalRequest = Schema.Struct({
  route: Schema.NonEmptyString.annotate({ description: "A route, a model or an alias." }),
  without: Schema.Array(Schema.NonEmptyString).check(
    Schema.isBetweenLength(1, mostTargets, { message: `must have 1 to ${mostTargets} targets` })
  ).annotate({ description: "The targets that fail, each `upstream/model`." })
}).annotate({ identifier: "RehearsalRequest" })

const RehearsalReply = Schema.Struct({
  token: Schema.String.annotate({ description: "For the header `X-Gateway-Rehearsal` of one request." }),
  route: Schema.String.annotate({ description: "The id of the route that the request has to ask for." }),
  expires_at: Schema.Int.annotate({ description: "Unix milliseconds." })
}).annotate({ identifier: "RehearsalReply" })

export class AdminRoutesGroup extends HttpApiGroup.make("admin-routes").add(
  HttpApiEndpoint.get("get", "/admin/routes", { success: RoutesReply }).annotateMerge(documented({
    summary: "Read the routes",
    description: "`revision` is for `If-Match`.",
    errors: reading
  })),
  HttpApiEndpoint.put("set", "/admin/routes", { ...revised, payload: RoutesRequest, success: RoutesSaved })
    .annotateMerge(documented({
      summary: "Replace the routes",
      description: "The order follows the list of models. A 400 lists all `faults`.",
      errors: changing,
      example: { routes: { qwen3: { targets: ["default/upstream-chat"], wait: 2 } } }
    })),
  HttpApiEndpoint.post("rehearse", "/admin/routes/rehearse", { payload: RehearsalRequest, success: RehearsalReply })
    .annotateMerge(documented({
      summary: "Prove a fallback without breaking a server",
      description:
        "Makes a token for one request to the route within a minute, at any node. The request sends it as `X-Gateway-Rehearsal`. The " +
        "targets named in `without` then fail for that request alone, as if they had no connection. Nothing is sent to them, and their " +
        "health, cooling, quotas and usage do not see it.",
      errors: [...reading, ...bodies, "rate_limit_exceeded"],
      example: { route: "qwen3", without: ["default/upstream-chat"] }
    }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: routes") {}
