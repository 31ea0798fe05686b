/**
 * Accounts of the pool: list, changes, tests, sessions, queue (spec "Account", "Queue status").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { AccountUse, BudgetEntry } from "../../config/schema.ts"
import { optional } from "../../domain/schemas.ts"
import { bodies, changing, documented, finding, reading } from "../../http/documented.ts"
import { aboutSort, BudgetView, lasting, like, missingNodes, pageFields, pageQuery, sortQuery } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"
import { QueueStatusReply } from "./queueStatus.ts"

/** A configured account (spec "Account"). */
export const AccountView = Schema.Struct({
  identifier: Schema.String.annotate({ description: "Email, mobile or `token:<hash>` of an account." }),
  upstream: Schema.optionalKey(Schema.String).annotate({
    description: "Name of its upstream, where several are configured. `<upstream>/<identifier>` names the account."
  }),
  email: Schema.String,
  mobile: Schema.String.annotate({ description: "Empty without a mobile." }),
  has_password: Schema.Boolean,
  has_token: Schema.Boolean,
  token_preview: Schema.String.annotate({ description: "The beginning of the token, then `...`." }),
  proxy: Schema.optionalKey(Schema.String).annotate({ description: "Proxy of the account, without its password." }),
  organization: Schema.optionalKey(Schema.String).annotate({
    description: "Accounts with the same one open one another's seals."
  }),
  priority: Schema.optionalKey(Schema.Int).annotate({
    description: "Higher ones are used first where the upstream's `choose` is `fill_first`; absent: 0."
  }),
  weight: Schema.optionalKey(Schema.Int).annotate({
    description: "Share of the requests where the upstream's `choose` is `weighted`; absent: 1."
  })
}).annotate({ identifier: "Account" })

const unixMillis = Schema.Int.annotate({ description: "Unix milliseconds." })

/** An account and its state in the pool. */
const accountState = {
  ...AccountView.fields,
  /** Identifies the account in log lines, traces and metrics. */
  hash: Schema.String,
  test_status: Schema.Literals(["", "ok", "failed"]).annotate({
    description: "Result of the last test or use: `ok`, `failed`, or empty."
  }),
  /** `ready`: in rotation; `cooling`: back in rotation after `recovery_seconds`; `out`: tried again after them. */
  health: Schema.Literals(["ready", "cooling", "out"]),
  health_reason: Schema.NullOr(Schema.String),
  recovery_seconds: Schema.NullOr(Schema.Int).annotate({ description: "Until the account is tried again." }),
  credential: Schema.optionalKey(
    Schema.Struct({
      kind: Schema.String.annotate({ description: "Its source: `credential.from` of the configuration." }),
      identity: Schema.String.annotate({ description: "Whom its tokens stand for, or where they come from." }),
      expires_at: Schema.NullOr(unixMillis).annotate({ description: "End of the token; `null` without a known end." }),
      renewed_at: Schema.NullOr(unixMillis).annotate({
        description: "When the token was issued; `null` before the first."
      }),
      failure: Schema.NullOr(Schema.Struct({ message: Schema.String, at: unixMillis })).annotate({
        description: "The last renewal, if it failed: the source and its step."
      })
    })
  ).annotate({ description: "Of an account whose token comes from a source, as this node knows it." }),
  in_use: Schema.Int,
  slots: Schema.Int.annotate({ description: "Requests that it may serve concurrently." }),
  /** Disabled by the operator: gets no new lease. */
  disabled: Schema.Boolean,
  note: Schema.String
}

/** Words of the upstream, which may quote a prompt or a reply. */
const message = Schema.NullOr(Schema.String).annotate({ description: "`null` for the role viewer." })

/** A window of an account's quota. */
const QuotaWindow = Schema.Struct({
  window: Schema.String.annotate({ description: "Its length (`5h`), or what it counts (`tokens`)." }),
  model: Schema.NullOr(Schema.String).annotate({
    description: "The model, or a part of the names of its models; `null` for a window of the whole account."
  }),
  used: Schema.Number.annotate({ description: "Used share, 0 to 1." }),
  limit: Schema.NullOr(Schema.Number),
  remaining: Schema.NullOr(Schema.Number),
  resets_at: unixMillis,
  status: Schema.Literals(["ok", "low", "exhausted"]).annotate({ description: "`low` from 80 % on." }),
  seen_at: unixMillis
}).annotate({ identifier: "QuotaWindow" })

/** What an account has done lately, from the memory of the nodes: a node begins with its start. */
const accountWork = {
  last_used_at: Schema.NullOr(unixMillis),
  requests_hour: Schema.Int.annotate({ description: "Attempts of the last hour, in steps of five minutes." }),
  failed_hour: Schema.Int.annotate({
    description: "Attempts of the last hour that failed because of the account or its upstream."
  }),
  last_error: Schema.NullOr(Schema.Struct({ code: Schema.String, message, at: unixMillis })).annotate({
    description: "The last such failure: its class and its message."
  }),
  last_test: Schema.NullOr(Schema.Struct({ success: Schema.Boolean, message, at: unixMillis })),
  health_since: Schema.NullOr(unixMillis).annotate({
    description: "Since when it is `cooling` or `out`; `null` in rotation, or where no node has seen it leave."
  }),
  quota: Schema.Array(QuotaWindow).annotate({
    description: "Windows of its quota, as its server has stated them; 16 at most."
  }),
  budgets: Schema.Array(BudgetView).annotate({ description: "Its budgets, with what is used of them." })
}

/** An account with its state in the pool and what it has done lately at all nodes. */
export const AccountItem = Schema.Struct({ ...accountState, ...accountWork }).annotate({ identifier: "AccountItem" })

/** A changed account in events. What it has done lately is absent where nodes share a store, since an event knows one node. */
export const ChangedAccount = Schema.Struct({
  ...accountState,
  ...Struct.map(accountWork, Schema.optionalKey)
}).annotate({ identifier: "ChangedAccount" })

/** States to filter a list of accounts by; `failed` is the result of the last test, whatever the state. */
export const AccountState = Schema.Literals(["ready", "cooling", "out", "disabled", "failed"])

/** What the list can be sorted by, beside `state`. */
export const accountSorts = [
  "identifier",
  "upstream",
  "note",
  "health",
  "test_status",
  "disabled",
  "recovery_seconds",
  "in_use",
  "last_used_at",
  "requests_hour",
  "failed_hour",
  "priority",
  "weight"
] as const

/** Accounts that need attention for the same cause. */
const AccountCause = Schema.Struct({
  state: Schema.Literals(["out", "failed", "cooling"]).annotate({
    description: "`failed`: in rotation, and the last test failed."
  }),
  reason: Schema.NullOr(Schema.String).annotate({ description: "Their `health_reason`." }),
  accounts: Schema.Int,
  names: Schema.Array(Schema.String).annotate({ description: "The first 20 of them." }),
  recovery_seconds: Schema.NullOr(Schema.Int).annotate({ description: "Until the first of them is tried again." }),
  since: Schema.NullOr(unixMillis).annotate({ description: "The earliest `health_since`, as this node knows it." })
}).annotate({ identifier: "AccountCause" })

export const AccountList = Schema.Struct({
  items: Schema.Array(AccountItem),
  ...pageFields,
  counts: Schema.optionalKey(Schema.Struct({
    all: Schema.Int,
    ready: Schema.Int,
    cooling: Schema.Int,
    out: Schema.Int,
    disabled: Schema.Int,
    failed: Schema.Int
  })).annotate({
    description:
      "With `sort=state`: the accounts of each state under the other filters, which add up to `all`, and those whose last test `failed`."
  }),
  causes: Schema.optionalKey(Schema.Array(AccountCause)).annotate({
    description:
      "With `sort=state`: why accounts need attention under the other filters, by `state` and then the most accounts first; 20 of a state at most."
  }),
  ...missingNodes
}).annotate({ identifier: "AccountList" })

const budget = BudgetEntry.fields

const BudgetRequest = Schema.Struct(
  {
    window: budget.window,
    requests: like(budget.requests, optional(Schema.Int)),
    tokens: like(budget.tokens, optional(Schema.Int)),
    cost: like(budget.cost, optional(Schema.Union([Schema.Number, Schema.String]))),
    strict: like(budget.strict, optional(Schema.Boolean))
  } satisfies Record<keyof typeof budget, unknown>
).annotate({ identifier: "BudgetRequest" })

/** What an operator sets of an account. */
const marks = {
  priority: like(AccountUse.priority, optional(Schema.Int)),
  weight: like(AccountUse.weight, optional(Schema.Int)),
  budgets: like(AccountUse.budgets, optional(Schema.Array(BudgetRequest))),
  proxy: optional(Schema.String).annotate({ description: "Proxy of the account, or `direct`." }),
  organization: optional(Schema.String).annotate({
    description: "Accounts with the same one open one another's seals."
  })
}

/** Body of `POST /admin/accounts`, and a line of a batch: an email or a mobile with a password, or a token. */
export const AddAccountRequest = Schema.Struct({
  email: optional(Schema.String).annotate({ description: "Login identity; or `mobile`." }),
  mobile: optional(Schema.String).annotate({ description: "Login identity; or `email`." }),
  password: optional(Schema.String).annotate({ description: "Never returned." }),
  token: optional(Schema.String).annotate({ description: "An upstream session token; never returned." }),
  note: optional(Schema.String),
  upstream: optional(Schema.String).annotate({ description: "Name of its upstream; by default `default`." }),
  disabled: optional(Schema.Boolean),
  ...marks
}).annotate({ identifier: "AddAccountRequest" })

const AccountsReply = Schema.Struct({ success: Schema.Boolean, total_accounts: Schema.Int, ...lasting })

/**
 * Body of `PATCH /admin/accounts/{identifier}`: at least one field. An empty note removes it, `null` any of the others but `disabled`,
 * `password` and `token`.
 */
export const PatchAccountRequest = Schema.Struct({
  disabled: Schema.optionalKey(Schema.Boolean),
  note: Schema.optionalKey(Schema.String),
  password: Schema.optionalKey(Schema.String).annotate({
    description: "A new password; never returned."
  }),
  token: Schema.optionalKey(Schema.String).annotate({
    description: "A new token; never returned. An account without a login has another identifier with it."
  }),
  ...marks
}).annotate({ identifier: "PatchAccountRequest" })

/** The account as the list shows it. */
const AddAccountReply = Schema.Struct({ ...AccountsReply.fields, account: AccountItem })

const PatchAccountReply = Schema.Struct({ success: Schema.Boolean, account: AccountItem, ...lasting })

/** Body of a batch of changes: accounts to add, or the identifiers of accounts to change; 20,000 at most. */
export const AccountBatchRequest = Schema.Union([
  Schema.Struct({
    action: Schema.Literal("add"),
    accounts: Schema.Array(AddAccountRequest),
    dry_run: optional(Schema.Boolean)
  }),
  Schema.Struct({
    action: Schema.Literals(["enable", "disable", "delete"]),
    identifiers: Schema.Array(Schema.String),
    dry_run: optional(Schema.Boolean)
  })
]).annotate({ identifier: "AccountBatchRequest" })

/** The result of one line of a batch. */
export const BatchResult = Schema.Struct({
  index: Schema.Int,
  identifier: Schema.String,
  ok: Schema.Boolean,
  /** Empty if `ok`; otherwise `duplicate`, `unknown account`, or the refused field. */
  detail: Schema.String
}).annotate({ identifier: "BatchResult" })

const AccountBatchReply = Schema.Struct({
  success: Schema.Boolean,
  /** Accounts that were changed, or would be without `dry_run`. */
  changed: Schema.Int,
  /** Refused lines. */
  failed: Schema.Int,
  /** One for each line, in the same order. */
  results: Schema.Array(BatchResult),
  ...lasting
})

/** Body of an account test; without a message only the creation of a session is tested. */
const TestAccountRequest = Schema.Struct({
  identifier: Schema.NonEmptyString.annotate({ description: "Email, mobile or `token:<hash>` of an account." }),
  model: optional(Schema.String).annotate({
    description: "A native model id, an alias, or a name of a well-known model family."
  }),
  message: optional(Schema.String).annotate({ description: "With a message, a completion is run too." })
}).annotate({ identifier: "TestAccountRequest" })

/** The result of an account test. */
export const AccountTestResult = Schema.Struct({
  account: Schema.String,
  success: Schema.Boolean,
  /** Milliseconds. */
  response_time: Schema.Int,
  /** The text of the reply, a description of the test, or the error. */
  message: Schema.String,
  model: Schema.String,
  session_count: Schema.Int,
  config_writable: Schema.Boolean,
  thinking: Schema.optionalKey(Schema.String)
}).annotate({ identifier: "AccountTestResult" })

/** The result of a renewal, and the account as the list shows it. */
const RenewAccountReply = Schema.Struct({
  success: Schema.Boolean,
  /** The source and its step, if it failed. */
  message: Schema.String,
  account: AccountItem
})

const TestAllRequest = Schema.Struct({ model: optional(Schema.String) }).annotate({
  identifier: "TestAllRequest"
})

const TestAllReply = Schema.Struct({
  total: Schema.Int,
  success: Schema.Int,
  failed: Schema.Int,
  results: Schema.Array(AccountTestResult)
})

const DeleteSessionsRequest = Schema.Struct({
  identifier: Schema.NonEmptyString.annotate({ description: "Email, mobile or `token:<hash>` of an account." })
}).annotate({
  identifier: "DeleteSessionsRequest"
})

const DeleteSessionsReply = Schema.Struct({
  success: Schema.Boolean,
  message: Schema.String,
  /** Present if the upstream keeps no sessions. */
  note: Schema.optionalKey(Schema.String)
})

const named = { identifier: Schema.NonEmptyString }

export class AdminAccountsGroup extends HttpApiGroup.make("admin-accounts").add(
  HttpApiEndpoint.get("list", "/admin/accounts", {
    query: {
      ...pageQuery,
      state: Schema.optionalKey(Schema.Union([Schema.Literal(""), AccountState])),
      upstream: Schema.optionalKey(Schema.String),
      ...sortQuery(["state", ...accountSorts])
    },
    success: AccountList
  }).annotateMerge(documented({
    summary: "List accounts",
    description:
      "Newest first. With `sort=state` those that need attention come first, and `counts` has the accounts of each state. For the " +
      `others, ${aboutSort}`,
    errors: [...reading, "invalid_request"]
  })),
  HttpApiEndpoint.post("add", "/admin/accounts", { payload: AddAccountRequest, success: AddAccountReply })
    .annotateMerge(
      documented({
        summary: "Add an account",
        description: "By email or mobile and password, or by a token.",
        errors: changing,
        example: { email: "someone@example.com", password: "secret" }
      })
    ),
  HttpApiEndpoint.post("batch", "/admin/accounts/batch", { payload: AccountBatchRequest, success: AccountBatchReply })
    .annotateMerge(documented({
      summary: "Add, enable, disable or delete many accounts",
      description:
        "A refused line does not affect the others; all accepted ones are saved together. `dry_run` changes nothing.",
      errors: changing,
      example: { action: "add", accounts: [{ email: "another@example.com", password: "secret" }], dry_run: true }
    })),
  HttpApiEndpoint.patch("patch", "/admin/accounts/:identifier", {
    params: named,
    payload: PatchAccountRequest,
    success: PatchAccountReply
  }).annotateMerge(documented({
    summary: "Disable or enable an account, or change its password, token, note, proxy or organization",
    description:
      "A disabled account gets no new requests; running ones finish. With a new password or token the account keeps its place and its marks, " +
      "and its faults are forgotten. The upstream of an account cannot be changed.",
    errors: [...changing, "not_found"],
    example: { disabled: true, note: "on holiday" }
  })),
  HttpApiEndpoint.delete("remove", "/admin/accounts/:identifier", { params: named, success: AccountsReply })
    .annotateMerge(documented({ summary: "Remove an account", errors: [...changing, "not_found"] })),
  HttpApiEndpoint.post("renew", "/admin/accounts/:identifier/renew", { params: named, success: RenewAccountReply })
    .annotateMerge(documented({
      summary: "Renew the token of an account's credential now",
      description:
        "Asks its source for a newer token. While that fails, the old one serves until its end. An account with a token or a login has nothing to renew: 409.",
      errors: [...finding, "conflict"]
    })),
  HttpApiEndpoint.post("test", "/admin/accounts/test", { payload: TestAccountRequest, success: AccountTestResult })
    .annotateMerge(documented({
      summary: "Test an account",
      errors: [...finding, ...bodies],
      example: { identifier: "someone@example.com" }
    })),
  HttpApiEndpoint.post("testAll", "/admin/accounts/test-all", { payload: TestAllRequest, success: TestAllReply })
    .annotateMerge(documented({
      summary: "Test all accounts, five at a time",
      errors: [...reading, ...bodies],
      mayBeEmpty: true,
      example: {}
    })),
  HttpApiEndpoint.post("deleteSessions", "/admin/accounts/sessions/delete-all", {
    payload: DeleteSessionsRequest,
    success: DeleteSessionsReply
  }).annotateMerge(documented({
    summary: "Delete all upstream sessions of an account",
    errors: [...finding, ...bodies],
    example: { identifier: "someone@example.com" }
  })),
  HttpApiEndpoint.get("queue", "/admin/queue/status", { success: QueueStatusReply }).annotateMerge(documented({
    summary: "Read the state of the queue over all nodes",
    description: "Responds with 503 while the shared store is unavailable.",
    errors: [...reading, "store_unavailable"]
  }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: accounts and queue") {}
