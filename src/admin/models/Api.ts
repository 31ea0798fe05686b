/**
 * Models: the facts that lists tell of each, with where they are from.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { effortLevels, factSources, modalities, schemaBindings } from "../../domain/modelFacts.ts"
import { documented, reading } from "../../http/documented.ts"
import { aboutSort, pageFields, pageQuery, sortQuery } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

const fact = <Value extends Schema.Top>(value: Value) =>
  Schema.optionalKey(Schema.Struct({ value, source: Schema.Literals(factSources) }))

const Facts = Schema.Struct({
  display_name: fact(Schema.String),
  description: fact(Schema.String),
  context_window: fact(Schema.Int),
  max_output_tokens: fact(Schema.Int),
  input: fact(Schema.Array(Schema.Literals(modalities))),
  output: fact(Schema.Array(Schema.Literals(modalities))),
  efforts: fact(Schema.Array(Schema.Literals(effortLevels))),
  tools: fact(Schema.Boolean),
  schemas: fact(Schema.Literals(schemaBindings)),
  prompt_cache_min_tokens: fact(Schema.Int)
}).annotate({ identifier: "ModelFacts" })

const perMillion = (unit: string) =>
  Schema.NullOr(Schema.String).annotate({
    description: `${unit}, as a decimal number in the currency; \`null\` without it.`
  })

/** The price of a target under the name. */
const TargetPrice = Schema.Struct({
  target: Schema.String.annotate({ description: "`upstream/model`." }),
  entry: Schema.NullOr(Schema.String).annotate({
    description: "Name of the entry in `prices` that gave it, or `list price of` its day; `null` without a price."
  }),
  listed: Schema.NullOr(Schema.String).annotate({
    description: "The day of the vendors' list that has the price; `null` for an entry of `prices`."
  }),
  from: Schema.NullOr(Schema.String).annotate({
    description: "When the price has begun; `null` without a beginning."
  }),
  input: perMillion("A million tokens of a prompt"),
  cached_input: perMillion("A million of them that were cached"),
  output: perMillion("A million tokens of a reply"),
  per_request: perMillion("A request")
}).annotate({ identifier: "TargetPrice" })

/** What requests for a model have done in the last 24 hours. */
const ModelDay = Schema.Struct({
  requests: Schema.Int,
  cost: Schema.String.annotate({ description: "Decimal number in the currency." }),
  first_event_p95_ms: Schema.NullOr(Schema.Finite).annotate({ description: "`null` where usage does not know it." })
}).annotate({ identifier: "ModelDay" })

const kinds = ["model", "route", "alias", "family"] as const

/** A name that callers may use. */
export const CataloguedModel = Schema.Struct({
  id: Schema.String.annotate({ description: "Of a family, the beginning of its names with a `*`." }),
  kind: Schema.Literals(kinds).annotate({
    description: "`model`: a model that upstreams list. `route`: a configured route."
  }),
  stands_for: Schema.NullOr(Schema.String).annotate({
    description: "The model or route that an alias or a family stands for; `null` for any other."
  }),
  hidden: Schema.Boolean.annotate({ description: "Left out of clients' lists." }),
  targets: Schema.Array(Schema.String).annotate({ description: "Each `upstream/model`, in their order." }),
  prices: Schema.Array(TargetPrice).annotate({ description: "One for each of `targets`." }),
  price_needed: Schema.Boolean.annotate({
    description: "A target has no price, and a key with a cost limit may ask for the name: such requests are refused."
  }),
  day: Schema.NullOr(ModelDay).annotate({
    description:
      "The last 24 hours, from full hours; `null` for aliases and families, which count as what they stand for."
  }),
  facts: Facts.annotate({ description: "A fact that no source has is absent." })
}).annotate({ identifier: "CataloguedModel" })

const ModelsReply = Schema.Struct({
  models: Schema.Array(CataloguedModel),
  ...pageFields,
  currency: Schema.NullOr(Schema.String)
}).annotate({ identifier: "ModelsReply" })

/** What the list can be sorted by. */
export const modelSorts = ["id", "kind", "input", "output", "requests", "cost", "first_event_p95_ms"] as const

export class AdminModelsGroup extends HttpApiGroup.make("admin-models").add(
  HttpApiEndpoint.get("list", "/admin/models", {
    query: { ...pageQuery, ...sortQuery(modelSorts), kind: Schema.optionalKey(Schema.Literals([...kinds, ""])) },
    success: ModelsReply
  }).annotateMerge(documented({
    summary: "List the names that clients may use, with targets, prices, usage and facts",
    description:
      "Models and routes in the order of clients' lists, hidden ones too, then aliases and families; 100 a page, and 1000 at most. `q` is a " +
      `part of a name, a target or an entry of \`prices\`. ${aboutSort} ` +
      "The `source` of a fact is `entry` (that of the model or the route), `server` (the server's own list), `model_facts`, `known` (the " +
      "product's table) or `targets` (all targets of a route).",
    errors: [...reading, "invalid_request"]
  }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: models and their facts") {}
