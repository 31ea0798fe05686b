/**
 * The requests of the last hour by minutes, and their errors by code.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { faultNames } from "../../domain/fault.ts"
import { documented, reading } from "../../http/documented.ts"
import { missingNodes } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

const percentile = Schema.NullOr(Schema.Int).annotate({
  description: "Milliseconds to the first event of a reply, within 5 percent; `null` without a first event."
})

/** The requests that ended in a minute or an hour. */
const counts = {
  requests: Schema.Int.annotate({ description: "The sum of `ok`, `failed` and `left`." }),
  ok: Schema.Int,
  failed: Schema.Int.annotate({ description: "Requests that ended with an error, also before an account was chosen." }),
  refused: Schema.Int.annotate({ description: "Those of `failed` that the client is at fault for." }),
  left: Schema.Int.annotate({ description: "Requests whose client disconnected." }),
  first_event_p50_ms: percentile,
  first_event_p95_ms: percentile,
  tokens: Schema.Int.annotate({ description: "Tokens of prompts and replies." }),
  cost: Schema.String.annotate({ description: "Decimal number in the configured currency." })
}

const RequestMinute = Schema.Struct({
  at: Schema.Int.annotate({ description: "The start of the minute in Unix milliseconds." }),
  ...counts
}).annotate({ identifier: "RequestMinute" })

/** What most errors of a code are for. */
const MostlyFor = Schema.NullOr(
  Schema.Struct({
    value: Schema.String,
    name: Schema.NullOr(Schema.String).annotate({ description: "The name of a key." }),
    count: Schema.Int.annotate({
      description: "How many of the errors at least; at most two ninths of them are missing."
    })
  }).annotate({ identifier: "ErrorCountMostlyFor" })
)

/** The errors of a code and a fault. */
const ErrorCount = Schema.Struct({
  code: Schema.String.annotate({ description: "The code of the error, or `other` for all other codes." }),
  fault: Schema.NullOr(Schema.Literals(faultNames)).annotate({
    description: "Who has to act, as in records of requests; `null` for `other`."
  }),
  count: Schema.Int,
  last_at: Schema.Int.annotate({ description: "Unix milliseconds." }),
  last_request_id: Schema.String,
  key: MostlyFor.annotate({ description: "The key that most of them are for; `null` if none has one." }),
  model: MostlyFor,
  upstream: MostlyFor
}).annotate({ identifier: "ErrorCount" })

const MinutesReply = Schema.Struct({
  since: Schema.Int.annotate({
    description: "When the oldest node began to count, in Unix milliseconds. Minutes before it are unknown, not empty."
  }),
  minutes: Schema.Array(RequestMinute).annotate({
    description: "60 minutes, of which the last one is the running one."
  }),
  before: Schema.Struct(counts).annotate({
    identifier: "RequestsBefore",
    description: "The sums of the hour before the 60 minutes. Unknown unless `since` is before it."
  }),
  first_event_p50_ms: percentile,
  first_event_p95_ms: percentile,
  answered: Schema.Array(Schema.Struct({
    model: Schema.String,
    target: Schema.String,
    requests: Schema.Int
  })).annotate({
    description:
      "Requests of the hour by model or route and the target that answered, or was tried last: the 200 with the most."
  }),
  errors: Schema.Array(ErrorCount).annotate({
    description: "Errors of the hour by code and fault, the most frequent first: 20 at most, and the rest as `other`."
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
