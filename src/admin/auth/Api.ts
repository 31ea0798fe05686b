/**
 * Login, and what a login is worth (spec "Admin endpoints").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { bodies, documented, reading } from "../../http/documented.ts"
import { AdminOpenEdge } from "../edges.ts"

export const LoginRequest = Schema.Struct({
  admin_key: Schema.String.annotate({ description: "The admin key, or the admin password once one is set." }),
  expire_hours: Schema.optionalKey(Schema.NullOr(Schema.Finite)).annotate({
    description: "Lifetime of the JWT; 24 by default."
  })
}).annotate({ identifier: "LoginRequest" })

export const LoginReply = Schema.Struct({ success: Schema.Boolean, token: Schema.String, expires_in: Schema.Int })

export const VerifyReply = Schema.Struct({
  valid: Schema.Boolean,
  expires_at: Schema.Int,
  remaining_seconds: Schema.Int
})

export class AdminAuthGroup extends HttpApiGroup.make("admin-auth").add(
  HttpApiEndpoint.post("login", "/admin/login", { payload: LoginRequest, success: LoginReply }).annotateMerge(
    documented({
      summary: "Log in",
      description: "Exchanges the admin key or the admin password for a JWT.",
      errors: [...reading, ...bodies, "rate_limit_exceeded"],
      example: { admin_key: "your-admin-key", expire_hours: 24 }
    })
  ),
  HttpApiEndpoint.get("verify", "/admin/verify", { success: VerifyReply }).annotateMerge(
    documented({ summary: "Check a JWT", access: "jwt", errors: reading })
  )
).middleware(AdminOpenEdge).annotate(OpenApi.Description, "Operators: login") {}
