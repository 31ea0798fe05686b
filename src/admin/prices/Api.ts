/**
 * Prices: the entries of the configuration, and the models that they price.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { PriceEntry } from "../../config/schema.ts"
import { changing, documented, reading } from "../../http/documented.ts"
import { lasting, like, revised } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

/** A decimal number. The configuration checks it, so that a refusal names the place. */
const amount = (field: Schema.Top) => Schema.optionalKey(like(field, Schema.Union([Schema.Number, Schema.String])))

const price = PriceEntry.fields

const fields = {
  input: amount(price.input),
  cached_input: amount(price.cached_input),
  output: amount(price.output),
  per_request: amount(price.per_request)
} satisfies Record<keyof typeof price, unknown>

const Prices = Schema.Record(Schema.String, Schema.Struct(fields).annotate({ identifier: "Price" }))
  .annotate({ identifier: "Prices" })

/** The price of a model of an upstream. */
const PricedTarget = Schema.Struct({
  target: Schema.String.annotate({ description: "`upstream/model`." }),
  upstream: Schema.String,
  model: Schema.String.annotate({ description: "The id within the upstream." }),
  server_model: Schema.String.annotate({ description: "The server's own name." }),
  name: Schema.String.annotate({ description: "The gateway's name: that of a route, or the model's id." }),
  price: Schema.NullOr(Schema.String).annotate({
    description: "Name of the entry in `prices` that counts; `null` without one."
  }),
  missing: Schema.Array(Schema.Literals(["input", "output"])).annotate({
    description: "Prices of tokens that the entry lacks; all without an entry. They count as 0."
  })
}).annotate({ identifier: "PricedTarget" })

const PricesReply = Schema.Struct({
  prices: Prices,
  currency: Schema.NullOr(Schema.String),
  targets: Schema.Array(PricedTarget),
  revision: Schema.String
}).annotate({ identifier: "PricesReply" })

/** Body of `PUT /admin/prices`: all prices by their names. */
export const PricesRequest = Schema.Struct({ prices: Prices }).annotate({ identifier: "PricesRequest" })

const PricesSaved = Schema.Struct({
  success: Schema.Boolean,
  prices: Prices,
  targets: Schema.Array(PricedTarget),
  ...lasting
}).annotate({ identifier: "PricesSaved" })

export class AdminPricesGroup extends HttpApiGroup.make("admin-prices").add(
  HttpApiEndpoint.get("get", "/admin/prices", { success: PricesReply }).annotateMerge(documented({
    summary: "Read the prices",
    description:
      "`targets` has each model of each upstream under its id and under each route to it, with the name of " +
      "the entry that counts. `revision` is for `If-Match`.",
    errors: reading
  })),
  HttpApiEndpoint.put("set", "/admin/prices", { ...revised, payload: PricesRequest, success: PricesSaved })
    .annotateMerge(documented({
      summary: "Replace the prices",
      description: "They count for requests that end from now on. A 400 lists all `faults`.",
      errors: changing,
      example: { prices: { "upstream-chat": { input: 0.15, cached_input: 0.075, output: "0.6" } } }
    }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: prices") {}
