/**
 * The requests of the last hour by minutes, and their errors by code.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { documented, reading } from "../../http/documented.ts"
import { missingNodes } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

const percentile = Schema.NullOr(Schema.Int).annotate({
  description: "Milliseconds to the first event of a reply, within 5 percent; `null` without a first event."
})

/** The requests that ended in a minute. */
const RequestMinute = Schema.Struct({
  at: Schema.Int.annotate({ description: "The start of the minute in Unix milliseconds." }),
  requests: Schema.Int.annotate({ description: "The sum of `ok`, `failed` and `left`." }),
  ok: Schema.Int,
  failed: Schema.Int.annotate({ description: "Requests that ended with an error, also before an account was chosen." }),
  left: Schema.Int.annotate({ description: "Requests whose client disconnected." }),
  first_event_p50_ms: percentile,
  first_event_p95_ms: percentile,
  tokens: Schema.Int.annotate({ description: "Tokens of prompts and replies." })
}).annotate({ identifier: "RequestMinute" })

/** The errors of a code. */
const ErrorCount = Schema.Struct({
  code: Schema.String.annotate({ description: "The code of the error, or `other` for all other codes." }),
  count: Schema.Int,
  last_at: Schema.Int.annotate({ description: "Unix milliseconds." }),
  last_request_id: Schema.String
}).annotate({ identifier: "ErrorCount" })

const MinutesReply = Schema.Struct({
  since: Schema.Int.annotate({
    description: "When the oldest node began to count, in Unix milliseconds. Minutes before it are unknown, not empty."
  }),
  minutes: Schema.Array(RequestMinute).annotate({
    description: "60 minutes, of which the last one is the running one."
  }),
  first_event_p50_ms: percentile,
  first_event_p95_ms: percentile,
  errors: Schema.Array(ErrorCount).annotate({
    description: "Errors of the hour, the most frequent code first: 20 codes at most, and the rest as `other`."
  }),
  ...missingNodes
}).annotate({ identifier: "RequestMinutes" })

export class AdminMinutesGroup extends HttpApiGroup.make("admin-minutes").add(
  HttpApiEndpoint.get("list", "/admin/minutes", { success: MinutesReply }).annotateMerge(documented({
    summary: "Read the requests of the last hour by minutes",
    description:
      "The sum of all nodes, from memory: a node begins with its start. A request counts in the minute in which it ends.",
    errors: reading
  }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: the last hour") {}
