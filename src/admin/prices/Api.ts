/**
 * Prices: the entries of the configuration, and the models that they price.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { PriceEntry } from "../../config/schema.ts"
import { type PieceUnit, pieceUnits, type TokenUnit, tokenUnits } from "../../domain/units.ts"
import { changing, documented, reading } from "../../http/documented.ts"
import { lasting, like, revised } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

/** A decimal number. The configuration checks it, so that a refusal names the place. */
const amount = (field: Schema.Top) => Schema.optionalKey(like(field, Schema.Union([Schema.Number, Schema.String])))

const units = Object.fromEntries(
  [...tokenUnits, ...pieceUnits].map((unit) => [unit, amount(PriceEntry.fields[unit])] as const)
) as { readonly [Unit in TokenUnit | PieceUnit]: ReturnType<typeof amount> }

const amounts = Schema.Record(Schema.String, Schema.Union([Schema.Number, Schema.String]))

const level = {
  ...units,
  per_tool_call: Schema.optionalKey(amounts).annotate({
    description: "Prices of one call of a provider's tool, by tool."
  })
}

const above = {
  above: Schema.optionalKey(Schema.Array(Schema.Struct({ tokens: Schema.Number, ...level }))).annotate({
    description: "Prices of requests whose prompt exceeds `tokens`; the largest one counts, for the whole request."
  })
}

const Price = Schema.Struct(
  {
    ...level,
    ...above,
    from: Schema.optionalKey(Schema.String).annotate({
      description: "A day in UTC or a time, from which the price counts."
    }),
    tiers: Schema.optionalKey(Schema.Record(Schema.String, Schema.Struct({ ...level, ...above }))).annotate({
      description: "Prices by the service tier that the reply names."
    }),
    factors: Schema.optionalKey(Schema.Record(Schema.String, amounts)).annotate({
      description: "Factors of the prices of tokens, by a field of the server's usage and its value."
    })
  } satisfies Record<keyof typeof PriceEntry.fields, unknown>
).annotate({ identifier: "Price" })

const Prices = Schema.Record(Schema.String, Schema.Union([Price, Schema.Array(Price)]))
  .annotate({ identifier: "Prices", description: "A list has prices by their dates." })

/** The price of a model of an upstream. */
const PricedTarget = Schema.Struct({
  target: Schema.String.annotate({ description: "`upstream/model`." }),
  upstream: Schema.String,
  model: Schema.String.annotate({ description: "The id within the upstream." }),
  server_model: Schema.String.annotate({ description: "The server's own name." }),
  name: Schema.String.annotate({ description: "The gateway's name: that of a route, or the model's id." }),
  price: Schema.NullOr(Schema.String).annotate({
    description: "Name of the entry in `prices` that counts, or `list price of` its day; `null` without one."
  }),
  listed: Schema.NullOr(Schema.String).annotate({
    description: "The day of the vendors' list that has the price; `null` for an entry of `prices`."
  }),
  from: Schema.NullOr(Schema.String).annotate({
    description: "When the price has begun; `null` without an entry, and for a price without a beginning."
  }),
  missing: Schema.Array(Schema.Literals(tokenUnits)).annotate({
    description:
      "Prices of tokens that servers of this kind count and the entry lacks; all without an entry. What stands in for one counts, else 0."
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
      description:
        "They count for requests that end from now on. `prices.list` stays as it is. A 400 lists all `faults`.",
      errors: changing,
      example: {
        prices: {
          "upstream-chat": { input: 0.15, cached_input: 0.075, output: "0.6" },
          "hosted/large": [{ input: 2.5, output: 10 }, { from: "2027-01-01", input: 2, output: 8 }]
        }
      }
    }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: prices") {}
