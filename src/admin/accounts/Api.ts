/**
 * Accounts of the pool: list, changes, tests, sessions, queue (spec "Account", "Queue status").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Schema from "effect/Schema"
import { AccountView } from "../accountView.ts"
import { lasting } from "../changes.ts"
import { AdminEdge } from "../edges.ts"

/** An entry of the list: the account, what its last test showed, and how it is doing in the pool. */
export const AccountItem = Schema.Struct({
  ...AccountView.fields,
  test_status: Schema.Literals(["", "ok", "failed"]),
  /** `ready`: in rotation; `cooling`: back after `recovery_seconds`; `out`: tried again after them. */
  health: Schema.Literals(["ready", "cooling", "out"]),
  health_reason: Schema.NullOr(Schema.String),
  recovery_seconds: Schema.NullOr(Schema.Int),
  in_use: Schema.Int
}).annotate({ identifier: "AccountItem" })

export const AccountList = Schema.Struct({
  items: Schema.Array(AccountItem),
  total: Schema.Int,
  page: Schema.Int,
  page_size: Schema.Int,
  total_pages: Schema.Int
}).annotate({ identifier: "AccountList" })

const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

/** Body of `POST /admin/accounts`: an email or a mobile with a password, or a token. */
export const AddAccountRequest = Schema.Struct({
  email: optional(Schema.String),
  mobile: optional(Schema.String),
  password: optional(Schema.String),
  token: optional(Schema.String)
}).annotate({ identifier: "AddAccountRequest" })

export const AccountsReply = Schema.Struct({ success: Schema.Boolean, total_accounts: Schema.Int, ...lasting })

/** Body of an account test; without a message only the making of a session is tested. */
export const TestAccountRequest = Schema.Struct({
  identifier: Schema.NonEmptyString,
  model: optional(Schema.String),
  message: optional(Schema.String)
}).annotate({ identifier: "TestAccountRequest" })

/** What a test of an account showed. */
export const AccountTestResult = Schema.Struct({
  account: Schema.String,
  success: Schema.Boolean,
  /** Milliseconds. */
  response_time: Schema.Int,
  /** The reply's text, what was tested, or why it failed. */
  message: Schema.String,
  model: Schema.String,
  session_count: Schema.Int,
  config_writable: Schema.Boolean,
  thinking: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "AccountTestResult" })

export const TestAllRequest = Schema.Struct({ model: optional(Schema.String) }).annotate({
  identifier: "TestAllRequest"
})

export const TestAllReply = Schema.Struct({
  total: Schema.Int,
  success: Schema.Int,
  failed: Schema.Int,
  results: Schema.Array(AccountTestResult)
})

export const DeleteSessionsRequest = Schema.Struct({ identifier: Schema.NonEmptyString }).annotate({
  identifier: "DeleteSessionsRequest"
})

export const DeleteSessionsReply = Schema.Struct({
  success: Schema.Boolean,
  message: Schema.String,
  /** Says so where the upstream keeps no sessions. */
  note: Schema.optionalKey(Schema.String)
})

export const QueueStatusReply = Schema.Struct({
  available: Schema.Int,
  in_use: Schema.Int,
  total: Schema.Int,
  available_accounts: Schema.Array(Schema.String),
  in_use_accounts: Schema.Array(Schema.String),
  max_inflight_per_account: Schema.Int,
  global_max_inflight: Schema.Int,
  recommended_concurrency: Schema.Int,
  waiting: Schema.Int,
  max_queue_size: Schema.Int
}).annotate({ identifier: "QueueStatus" })

/** A number of the query; a field of a form that was left empty counts as absent. */
const PageNumber = Schema.Union([Schema.Literal(""), Schema.FiniteFromString])

export class AdminAccountsGroup extends HttpApiGroup.make("admin-accounts").add(
  HttpApiEndpoint.get("list", "/admin/accounts", {
    query: {
      page: Schema.optionalKey(PageNumber),
      page_size: Schema.optionalKey(PageNumber),
      q: Schema.optionalKey(Schema.String)
    },
    success: AccountList
  }),
  HttpApiEndpoint.post("add", "/admin/accounts", { payload: AddAccountRequest, success: AccountsReply }),
  HttpApiEndpoint.delete("remove", "/admin/accounts/:identifier", {
    params: { identifier: Schema.NonEmptyString },
    success: AccountsReply
  }),
  HttpApiEndpoint.post("test", "/admin/accounts/test", { payload: TestAccountRequest, success: AccountTestResult }),
  HttpApiEndpoint.post("testAll", "/admin/accounts/test-all", { payload: TestAllRequest, success: TestAllReply }),
  HttpApiEndpoint.post("deleteSessions", "/admin/accounts/sessions/delete-all", {
    payload: DeleteSessionsRequest,
    success: DeleteSessionsReply
  }),
  HttpApiEndpoint.get("queue", "/admin/queue/status", { success: QueueStatusReply })
).middleware(AdminEdge) {}
