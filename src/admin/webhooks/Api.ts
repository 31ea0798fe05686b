/**
 * Webhooks: the entries of the configuration, their deliveries, and their test.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { WebhookEntry } from "../../config/schema.ts"
import { type NoticeType, noticeTypes } from "../../domain/notices.ts"
import { changing, documented, finding, reading } from "../../http/documented.ts"
import { lasting, like, revised } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

const { fields } = WebhookEntry

/** The configuration checks the values, so that a refusal names the place. */
const Webhook = Schema.Struct({
  name: like(fields.name, Schema.String),
  url: like(fields.url, Schema.String),
  secret: like(fields.secret, Schema.String),
  secret_previous: Schema.optionalKey(like(fields.secret_previous, Schema.String)),
  headers: Schema.optionalKey(like(fields.headers, Schema.Record(Schema.String, Schema.String))),
  events: Schema.optionalKey(like(fields.events, Schema.Array(Schema.String)))
}).annotate({ identifier: "Webhook" })

const Type = Schema.Literals(Object.keys(noticeTypes) as Array<NoticeType>)

const outcome = {
  id: Schema.String.annotate({ description: "Id of the event." }),
  type: Type,
  at: Schema.String.annotate({ description: "When it was sent, RFC 3339." }),
  ms: Schema.Int.annotate({ description: "Milliseconds until its end." }),
  status: Schema.NullOr(Schema.Int).annotate({ description: "HTTP status of the answer; `null` without one." }),
  error: Schema.NullOr(Schema.String).annotate({ description: "Why it is no success; `null` for success." })
}

const WebhookState = Schema.Struct({
  name: Schema.String,
  state: Schema.Literals(["active", "gone"]).annotate({
    description: "`gone`: the receiver has answered 410, and nothing is sent until the webhook is changed."
  }),
  waiting: Schema.Int.annotate({ description: "Events that wait to be delivered, also again." }),
  delivered: Schema.Int.annotate({ description: "Events that were delivered." }),
  dropped: Schema.Int.annotate({ description: "Events that were never delivered." }),
  last: Schema.NullOr(Schema.Struct(outcome)).annotate({ description: "The last delivery." })
}).annotate({ identifier: "WebhookState" })

const WebhooksReply = Schema.Struct({
  webhooks: Schema.Array(Webhook),
  states: Schema.Array(WebhookState).annotate({
    description: "Of this node since its start, in the order of `webhooks`."
  }),
  events: Schema.Array(Schema.Struct({ type: Type, when: Schema.String })).annotate({
    description: "The events that exist."
  }),
  revision: Schema.String
}).annotate({ identifier: "WebhooksReply" })

/** Body of `PUT /admin/webhooks`: all webhooks. */
export const WebhooksRequest = Schema.Struct({ webhooks: Schema.Array(Webhook) }).annotate({
  identifier: "WebhooksRequest"
})

const WebhooksSaved = Schema.Struct({
  success: Schema.Boolean,
  webhooks: Schema.Array(Webhook),
  ...lasting
}).annotate({ identifier: "WebhooksSaved" })

const TestRequest = Schema.Struct({ name: Schema.String }).annotate({ identifier: "WebhookTestRequest" })

const TestReply = Schema.Struct({ success: Schema.Boolean, name: Schema.String, ...outcome }).annotate({
  identifier: "WebhookTestReply"
})

const DeliveriesReply = Schema.Struct({
  deliveries: Schema.Array(Schema.Struct(outcome).annotate({ identifier: "WebhookDelivery" })).annotate({
    description: "Of this node since its start, the newest first: at most 100. A repeat is a delivery of its own."
  })
}).annotate({ identifier: "WebhookDeliveries" })

const ResendRequest = Schema.Struct({
  name: Schema.String,
  id: Schema.String.annotate({ description: "Id of the event of a kept delivery." })
}).annotate({ identifier: "WebhookResendRequest" })

export class AdminWebhooksGroup extends HttpApiGroup.make("admin-webhooks").add(
  HttpApiEndpoint.get("get", "/admin/webhooks", { success: WebhooksReply }).annotateMerge(documented({
    summary: "Read the webhooks",
    description: "Secrets and values of headers are `***`. `revision` is for `If-Match`.",
    errors: reading
  })),
  HttpApiEndpoint.put("set", "/admin/webhooks", { ...revised, payload: WebhooksRequest, success: WebhooksSaved })
    .annotateMerge(documented({
      summary: "Replace the webhooks",
      description: "`***` keeps the secret or the header of the webhook of the same name. A 400 lists all `faults`.",
      errors: changing,
      example: {
        webhooks: [{
          name: "ops",
          url: "https://hooks.example/gateway",
          secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
          events: ["budget.*", "quota.low"]
        }]
      }
    })),
  HttpApiEndpoint.post("test", "/admin/webhooks/test", { payload: TestRequest, success: TestReply })
    .annotateMerge(documented({
      summary: "Test a webhook",
      description:
        "Sends `webhook.test` immediately, and one time. A refusal of the receiver is a reply with `success: false`.",
      errors: [...changing, "not_found"],
      example: { name: "ops" }
    })),
  HttpApiEndpoint.get("deliveries", "/admin/webhooks/deliveries", {
    query: { name: Schema.String },
    success: DeliveriesReply
  }).annotateMerge(documented({
    summary: "Read the last deliveries of a webhook",
    description: "They are kept in memory.",
    errors: [...finding, "invalid_request"]
  })),
  HttpApiEndpoint.post("resend", "/admin/webhooks/resend", { payload: ResendRequest, success: TestReply })
    .annotateMerge(documented({
      summary: "Send an event again",
      description:
        "Sends the event of a kept delivery immediately, one time, and with the same id, so that its receiver knows it. A refusal of the " +
        "receiver is a reply with `success: false`.",
      errors: [...changing, "not_found"],
      example: { name: "ops", id: "evt_0123456789abcdef0123456789abcdef" }
    }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: webhooks") {}
