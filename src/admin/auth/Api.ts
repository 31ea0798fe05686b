/**
 * Login, and what a login is worth (spec "Admin endpoints").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Schema from "effect/Schema"
import { AdminOpenEdge } from "../edges.ts"

export const LoginRequest = Schema.Struct({
  admin_key: Schema.String,
  expire_hours: Schema.optionalKey(Schema.NullOr(Schema.Finite))
}).annotate({ identifier: "LoginRequest" })

export const LoginReply = Schema.Struct({ success: Schema.Boolean, token: Schema.String, expires_in: Schema.Int })

export const VerifyReply = Schema.Struct({
  valid: Schema.Boolean,
  expires_at: Schema.Int,
  remaining_seconds: Schema.Int
})

export class AdminAuthGroup extends HttpApiGroup.make("admin-auth").add(
  HttpApiEndpoint.post("login", "/admin/login", { payload: LoginRequest, success: LoginReply }),
  HttpApiEndpoint.get("verify", "/admin/verify", { success: VerifyReply })
).middleware(AdminOpenEdge) {}
