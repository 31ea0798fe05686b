/**
 * Named tokens of machines for the admin API, each with a role.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { AdminTokenEntry, roles } from "../../config/schema.ts"
import { optional } from "../../domain/schemas.ts"
import { changing, documented, reading } from "../../http/documented.ts"
import { lasting, like } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

/** A token without its secret. */
export const AdminTokenItem = Schema.Struct({
  id: Schema.String,
  name: Schema.String,
  role: Schema.Literals(roles),
  /** RFC 3339, UTC; `null`: it does not expire. */
  expires_at: Schema.NullOr(Schema.String),
  expired: Schema.Boolean
}).annotate({ identifier: "AdminToken" })

const AdminTokensReply = Schema.Struct({ tokens: Schema.Array(AdminTokenItem) }).annotate({
  identifier: "AdminTokens"
})

const token = AdminTokenEntry.fields

export const AddAdminTokenRequest = Schema.Struct(
  {
    name: like(token.name, Schema.String),
    role: Schema.Literals(roles).annotate({
      description: "A `viewer` reads everything but secrets, exports and bodies of requests."
    }),
    expires_at: like(token.expires_at, optional(Schema.String))
  } satisfies Record<Exclude<keyof typeof token, "id" | "hash">, unknown>
).annotate({
  identifier: "AddAdminTokenRequest"
})

const AdminTokenAdded = Schema.Struct({
  success: Schema.Boolean,
  secret: Schema.String.annotate({ description: "The credential, `mga-…`. Only this reply has it." }),
  token: AdminTokenItem,
  ...lasting
}).annotate({ identifier: "AdminTokenAdded" })

const AdminTokenRemoved = Schema.Struct({ success: Schema.Boolean, id: Schema.String, ...lasting })

export class AdminTokensGroup extends HttpApiGroup.make("admin-tokens").add(
  HttpApiEndpoint.get("list", "/admin/tokens", { success: AdminTokensReply }).annotateMerge(
    documented({ summary: "List the tokens for the admin API", errors: reading })
  ),
  HttpApiEndpoint.post("add", "/admin/tokens", { payload: AddAdminTokenRequest, success: AdminTokenAdded })
    .annotateMerge(documented({
      summary: "Create an admin token",
      description: "The token is a bearer credential, and signs in at `/admin/login` and `/admin/session`.",
      errors: changing,
      example: { name: "dashboard", role: "viewer", expires_at: "2030-01-31T00:00:00Z" }
    })),
  HttpApiEndpoint.delete("remove", "/admin/tokens/:id", {
    params: { id: Schema.NonEmptyString },
    success: AdminTokenRemoved
  }).annotateMerge(documented({
    summary: "Delete an admin token",
    description: "Its sessions end immediately.",
    errors: [...changing, "not_found"]
  }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: tokens for the admin API") {}
