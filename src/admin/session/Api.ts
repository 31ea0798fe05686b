/**
 * Sessions of browsers: the login as a cookie that no script can read.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { always, bodies, documented, finding } from "../../http/documented.ts"
import { LoginRequest } from "../auth/Api.ts"
import { AdminOpenEdge } from "../edges.ts"

const remaining = {
  /** Unix seconds. */
  expires_at: Schema.Int,
  remaining_seconds: Schema.Int
}

/** The reply to a login; the token is in the cookie alone. */
export const SessionCreated = Schema.Struct({ success: Schema.Boolean, ...remaining })

/** Whether a session is there. */
export const SessionReply = Schema.Union([
  Schema.Struct({ active: Schema.Literal(true), ...remaining, default_password_warning: Schema.Boolean }),
  Schema.Struct({ active: Schema.Literal(false) })
]).annotate({ identifier: "Session" })

export const SessionEnded = Schema.Struct({
  success: Schema.Boolean,
  pending: Schema.optionalKey(Schema.Boolean).annotate({
    description: "True where the login has ended here and that could not be kept yet, such as on a full disk. It is " +
      "written as soon as that is possible."
  })
})

/** All take the cookie, and set one, only with `Sec-Fetch-Site: same-origin`. */
export class AdminSessionGroup extends HttpApiGroup.make("admin-session").add(
  HttpApiEndpoint.post("create", "/admin/session", { payload: LoginRequest, success: SessionCreated }).annotateMerge(
    documented({
      summary: "Sign a browser in",
      description: "For pages of the gateway's own origin: the login is a cookie that no script can read.",
      errors: [...finding, ...bodies, "rate_limit_exceeded"],
      example: { admin_key: "your-admin-key", expire_hours: 24 }
    })
  ),
  HttpApiEndpoint.get("get", "/admin/session", { success: SessionReply }).annotateMerge(documented({
    summary: "Read whether a browser is signed in",
    errors: [...always, "not_found"]
  })),
  HttpApiEndpoint.delete("end", "/admin/session", { success: SessionEnded }).annotateMerge(documented({
    summary: "Sign a browser out",
    description: "Ends the login itself, wherever its token is.",
    errors: finding
  }))
).middleware(AdminOpenEdge).annotate(OpenApi.Description, "Operators: sessions of browsers") {}
