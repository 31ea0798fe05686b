/**
 * Logins of operators: JWTs (spec "Admin endpoints"), and sessions of browsers in a cookie that no script can read.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { roles } from "../../config/schema.ts"
import { always, bodies, documented, finding, reading } from "../../http/documented.ts"
import { AdminOpenMiddleware } from "../middleware.ts"

const LoginRequest = Schema.Struct({
  admin_key: Schema.String.annotate({
    description: "The admin key, or the admin password if one is set, or an admin token."
  }),
  expire_hours: Schema.optionalKey(Schema.NullOr(Schema.Finite)).annotate({
    description: "Lifetime of the JWT; 24 by default."
  })
}).annotate({ identifier: "LoginRequest" })

const LoginReply = Schema.Struct({ success: Schema.Boolean, token: Schema.String, expires_in: Schema.Int })

const VerifyReply = Schema.Struct({
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
).middleware(AdminOpenMiddleware).annotate(OpenApi.Description, "Operators: login") {}

const remaining = {
  /** Unix seconds. */
  expires_at: Schema.Int,
  remaining_seconds: Schema.Int
}

/** The reply to a login; the token is only in the cookie. */
const SessionCreated = Schema.Struct({ success: Schema.Boolean, ...remaining })

/** Whether the browser has a session. */
const SessionReply = Schema.Union([
  Schema.Struct({
    active: Schema.Literal(true),
    role: Schema.Literals(roles),
    /** The token that signed in; `null` for the admin key or password. */
    name: Schema.NullOr(Schema.String),
    ...remaining,
    default_password_warning: Schema.Boolean
  }),
  Schema.Struct({ active: Schema.Literal(false) })
]).annotate({ identifier: "Session" })

const SessionEnded = Schema.Struct({
  success: Schema.Boolean,
  pending: Schema.optionalKey(Schema.Boolean).annotate({
    description:
      "True if the login has ended but that could not be saved yet, such as on a full disk. Saving is retried " +
      "until it succeeds."
  })
})

/** The cookie is read and set only with `Sec-Fetch-Site: same-origin`. */
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
    description: "Ends the login itself, including for other users of its token.",
    errors: finding
  }))
).middleware(AdminOpenMiddleware).annotate(OpenApi.Description, "Operators: sessions of browsers") {}
