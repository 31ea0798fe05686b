/**
 * Live changes as server-sent events.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { documented, reading } from "../../http/documented.ts"
import { ChangedAccount } from "../accounts/Api.ts"
import { QueueStatusReply } from "../accounts/queueStatus.ts"
import { AdminMiddleware } from "../middleware.ts"
import { RequestItem } from "../requests/Api.ts"

/** The first event. */
export const HelloEvent = Schema.Struct({
  version: Schema.String,
  /** Unix milliseconds. */
  started_at: Schema.Int,
  /** The revision of the configuration. */
  revision: Schema.String
})

/**
 * The pool and its changed accounts, 100 at most; the first such event has those in use, out of rotation, or with a failed test. `more`:
 * there are others.
 */
export const PoolEvent = Schema.Struct({
  total: Schema.Int,
  available: Schema.Int,
  in_use: Schema.Int,
  cooling: Schema.Int,
  out: Schema.Int,
  disabled: Schema.Int,
  /** Accounts in rotation whose last test failed. */
  failed_tests: Schema.Int,
  max_inflight_per_account: Schema.Int,
  global_max_inflight: Schema.Int,
  changed: Schema.Array(ChangedAccount),
  more: Schema.Boolean
}).annotate({ identifier: "PoolEvent" })

const { max_queue_size, oldest_wait_ms, waiters, waiting } = QueueStatusReply.fields

/** The waiting requests. */
export const QueueEvent = Schema.Struct({ waiting, max_queue_size, oldest_wait_ms, waiters }).annotate({
  identifier: "QueueEvent"
})

/** The changed requests in their newest state, latest change first, 200 at most. `more`: there are others. */
export const RequestsEvent = Schema.Struct({
  items: Schema.Array(RequestItem),
  more: Schema.Boolean
}).annotate({ identifier: "RequestsEvent" })

/** The configuration has changed. */
export const ConfigEvent = Schema.Struct({ revision: Schema.String })

/** `reset`: events were missed, and lists must be read again. `session_ended`: the stream ends. */
const EmptyEvent = Schema.Struct({})

/** One event of the stream; `data` is one line of JSON. */
export const AdminEvent = Schema.Union([
  Schema.Struct({ event: Schema.Literal("hello"), id: Schema.String, data: HelloEvent }),
  Schema.Struct({ event: Schema.Literal("pool"), id: Schema.String, data: PoolEvent }),
  Schema.Struct({ event: Schema.Literal("queue"), id: Schema.String, data: QueueEvent }),
  Schema.Struct({ event: Schema.Literal("requests"), id: Schema.String, data: RequestsEvent }),
  Schema.Struct({ event: Schema.Literal("config"), id: Schema.String, data: ConfigEvent }),
  Schema.Struct({ event: Schema.Literals(["reset", "session_ended"]), id: Schema.String, data: EmptyEvent })
]).annotate({ identifier: "AdminEvent" })

const SentEvent = Schema.Struct({ event: Schema.String, id: Schema.String, data: Schema.String })

export class AdminEventsGroup extends HttpApiGroup.make("admin-events").add(
  HttpApiEndpoint.get("stream", "/admin/events", {
    // Names of topics, separated by commas; all topics if absent.
    query: { topics: Schema.optionalKey(Schema.String) },
    headers: { "last-event-id": Schema.optionalKey(Schema.String) },
    success: HttpApiSchema.StreamSse({ events: SentEvent })
  }).annotateMerge(documented({
    summary: "Follow what changes, as server-sent events",
    description:
      "First `hello`, then `pool`, `queue`, `requests` and `config` as they change, at most four of a kind a second; " +
      "`reset` after a gap, `session_ended` before the end. With `Last-Event-ID` missed events come first. " +
      "At most 32 streams are open: 8 of one named credential, 24 of all operators and viewers.",
    errors: [...reading, "invalid_request", "rate_limit_exceeded"]
  }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: live changes") {}
