/**
 * Business keys: their list, and adding, changing and removing them (spec "Admin endpoints").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Schema from "effect/Schema"
import { windowNames } from "../../config/schema.ts"
import { lasting } from "../changes.ts"
import { AdminEdge } from "../edges.ts"
import { StoreView } from "../usage/Api.ts"

const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const Window = Schema.Literals(windowNames)

/** What a key may use of a window. */
export const KeyLimitView = Schema.Struct({
  window: Window,
  requests: Schema.NullOr(Schema.Int),
  tokens: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "KeyLimit" })

const KeyLimitRequest = Schema.Struct({
  window: Window,
  requests: optional(Schema.Int),
  tokens: optional(Schema.Int)
})

/** The fields of a key's record, as they are given. */
const recordFields = {
  name: optional(Schema.String),
  note: optional(Schema.String),
  disabled: optional(Schema.Boolean),
  expires_at: optional(Schema.String),
  models: optional(Schema.Array(Schema.String)),
  max_inflight: optional(Schema.Int),
  limits: optional(Schema.Array(KeyLimitRequest))
}

/** Body of `POST /admin/keys`: exactly one of `key` and `generate`. */
export const AddKeyRequest = Schema.Struct({
  key: optional(Schema.String),
  generate: optional(Schema.Boolean),
  ...recordFields
}).annotate({ identifier: "AddKeyRequest" })

/** Body of `PATCH /admin/keys/{id}`: what is not named stays, `null` clears. */
export const ChangeKeyRequest = Schema.Struct(recordFields).annotate({ identifier: "ChangeKeyRequest" })

const Spent = Schema.NullOr(Schema.Struct({ limit: Schema.Int, used: Schema.Int, remaining: Schema.Int }))

/** A window that the key is limited in. */
export const KeyWindowView = Schema.Struct({
  window: Window,
  started_at: Schema.String,
  resets_at: Schema.String,
  requests: Spent,
  tokens: Spent
}).annotate({ identifier: "KeyWindow" })

/** A key without the key itself. */
export const KeyItem = Schema.Struct({
  id: Schema.String,
  preview: Schema.String,
  state: Schema.Literals(["active", "disabled", "expired"]),
  name: Schema.NullOr(Schema.String),
  note: Schema.NullOr(Schema.String),
  disabled: Schema.Boolean,
  expires_at: Schema.NullOr(Schema.String),
  models: Schema.NullOr(Schema.Array(Schema.String)),
  max_inflight: Schema.NullOr(Schema.Int),
  limits: Schema.Array(KeyLimitView),
  created_at: Schema.NullOr(Schema.String),
  usage: Schema.Struct({
    in_flight: Schema.Int,
    /** The limit in effect. */
    max_inflight: Schema.NullOr(Schema.Int),
    last_used_at: Schema.NullOr(Schema.String),
    windows: Schema.Array(KeyWindowView)
  })
}).annotate({ identifier: "KeyItem" })

export const KeyList = Schema.Struct({
  items: Schema.Array(KeyItem),
  total: Schema.Int,
  page: Schema.Int,
  page_size: Schema.Int,
  total_pages: Schema.Int,
  store: StoreView
}).annotate({ identifier: "KeyList" })

export const KeysReply = Schema.Struct({ success: Schema.Boolean, total_keys: Schema.Int, ...lasting })

export const AddKeyReply = Schema.Struct({
  ...KeysReply.fields,
  id: Schema.String,
  preview: Schema.String,
  /** The key, where it was generated: it is shown this once. */
  key: Schema.optionalKey(Schema.String)
})

export const ChangeKeyReply = Schema.Struct({ success: Schema.Boolean, key: KeyItem, ...lasting })

/** A number of the query; a field of a form that was left empty counts as absent. */
const PageNumber = Schema.Union([Schema.Literal(""), Schema.FiniteFromString])

/** They refuse with 400 what is empty, wrong or there already, and with 404 what is not there. */
export class AdminKeysGroup extends HttpApiGroup.make("admin-keys").add(
  HttpApiEndpoint.get("list", "/admin/keys", {
    query: {
      page: Schema.optionalKey(PageNumber),
      page_size: Schema.optionalKey(PageNumber),
      q: Schema.optionalKey(Schema.String)
    },
    success: KeyList
  }),
  HttpApiEndpoint.post("add", "/admin/keys", { payload: AddKeyRequest, success: AddKeyReply }),
  HttpApiEndpoint.patch("change", "/admin/keys/:id", {
    params: { id: Schema.NonEmptyString },
    payload: ChangeKeyRequest,
    success: ChangeKeyReply
  }),
  HttpApiEndpoint.delete("remove", "/admin/keys/:key", { params: { key: Schema.NonEmptyString }, success: KeysReply })
).middleware(AdminEdge) {}
