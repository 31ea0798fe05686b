/**
 * The state of the queue, as the admin API and its events show it (spec "Queue status").
 */
import * as Schema from "effect/Schema"

/** A request that waits for an account. */
export const QueueWaiter = Schema.Struct({
  /** Milliseconds. */
  age_ms: Schema.Int,
  style: Schema.String,
  account: Schema.NullOr(Schema.String)
}).annotate({ identifier: "QueueWaiter" })

/** The pool of an upstream. */
const UpstreamPool = Schema.Struct({
  name: Schema.String,
  accounts: Schema.Struct({ ready: Schema.Int, cooling: Schema.Int, out: Schema.Int, disabled: Schema.Int }),
  in_use: Schema.Int,
  max_inflight: Schema.Int,
  /** A request that waits for several upstreams counts at each. */
  waiting: Schema.Int,
  state: Schema.Literals(["ready", "cooled", "disabled"]),
  /** Milliseconds until a request tries it again; `null` unless it is cooled. */
  cooled_ms: Schema.NullOr(Schema.Int),
  reason: Schema.NullOr(Schema.String)
}).annotate({ identifier: "UpstreamPool" })

export const QueueStatusReply = Schema.Struct({
  available: Schema.Int.annotate({ description: "Accounts with spare capacity." }),
  in_use: Schema.Int.annotate({ description: "Slots in use." }),
  total: Schema.Int.annotate({ description: "Configured accounts that are not disabled." }),
  available_accounts: Schema.Array(Schema.String),
  in_use_accounts: Schema.Array(Schema.String),
  max_inflight_per_account: Schema.Int,
  global_max_inflight: Schema.Int,
  recommended_concurrency: Schema.Int.annotate({ description: "`total` multiplied by `max_inflight_per_account`." }),
  waiting: Schema.Int.annotate({ description: "Requests that wait for an account." }),
  max_queue_size: Schema.Int.annotate({ description: "Requests that may wait." }),
  /** One entry for each node of the gateway. */
  nodes: Schema.Array(Schema.Struct({ id: Schema.String, in_use: Schema.Int, waiting: Schema.Int })),
  cooling: Schema.Int,
  out: Schema.Int,
  disabled: Schema.Int,
  failed_tests: Schema.Int.annotate({ description: "Accounts in rotation whose last test failed." }),
  /** Why no account can be used, if all are out of rotation. */
  reason: Schema.NullOr(Schema.String),
  /** Milliseconds; `null` if no request waits. */
  oldest_wait_ms: Schema.NullOr(Schema.Int),
  /** The longest waiting requests, 50 at most; `account` is the account that a request is pinned to. */
  waiters: Schema.Array(QueueWaiter),
  /** The pool of each upstream in the order of the configuration; absent in a configuration of one upstream. */
  upstreams: Schema.optional(Schema.Array(UpstreamPool))
}).annotate({ identifier: "QueueStatus" })
