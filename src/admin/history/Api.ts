/**
 * The history of admin changes: who changed what, from where and when.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { documented, reading } from "../../http/documented.ts"
import { changeKinds } from "../../usage/Change.ts"
import { PageNumber } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"
import { StoreView } from "../usage/Api.ts"

const ChangedField = Schema.Struct({
  path: Schema.String.annotate({
    description: "Dotted path in the configuration, such as `runtime.sticky`, `keys[Mobile app].limits` or " +
      "`accounts[ada@example.com].disabled`."
  }),
  /** Text, or compact JSON of other values; `null`: the field was absent. */
  before: Schema.NullOr(Schema.String),
  /** `null`: the field is removed. */
  after: Schema.NullOr(Schema.String)
}).annotate({ identifier: "ChangedField" })

/** One change. */
export const ChangeView = Schema.Struct({
  id: Schema.String.annotate({ description: "Also the cursor to older changes." }),
  /** RFC 3339, UTC. */
  at: Schema.String,
  who: Schema.Struct({
    kind: Schema.Literals(changeKinds),
    name: Schema.NullOr(Schema.String).annotate({
      description: "The token's name, the beginning of the session's id, or the path of the edited file."
    })
  }),
  /** The client's address; `null` for a change without a request. */
  address: Schema.NullOr(Schema.String),
  action: Schema.String,
  fields: Schema.Array(ChangedField).annotate({
    description: "At most 100 fields. Secrets are `***`; a value has at most 200 characters."
  }),
  more_fields: Schema.Int.annotate({ description: "Number of changed fields that are not in `fields`." }),
  /** The node that made the change. */
  node: Schema.String
}).annotate({ identifier: "Change" })

export const ChangesReply = Schema.Struct({
  changes: Schema.Array(ChangeView),
  next: Schema.NullOr(Schema.String).annotate({
    description: "`before` of the next, older page; `null` at the end."
  }),
  store: StoreView
}).annotate({ identifier: "Changes" })

export class AdminChangesGroup extends HttpApiGroup.make("admin-changes").add(
  HttpApiEndpoint.get("list", "/admin/changes", {
    query: { before: Schema.optionalKey(Schema.String), limit: Schema.optionalKey(PageNumber) },
    success: ChangesReply
  }).annotateMerge(documented({
    summary: "List admin changes",
    description:
      "Newest first: changes by the admin API, and edits of the configuration file. `before` is `next` of the page " +
      "before, the id of a change, or an RFC 3339 time; `limit` is at most 500, 50 by default.",
    errors: [...reading, "invalid_request"]
  }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: history of changes") {}
