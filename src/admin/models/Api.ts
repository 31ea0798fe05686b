/**
 * Models: the facts that lists tell of each, with where they are from.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { effortLevels, factSources, modalities } from "../../domain/modelFacts.ts"
import { documented, reading } from "../../http/documented.ts"
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
  tools: fact(Schema.Boolean)
}).annotate({ identifier: "ModelFacts" })

/** A model or a route, as it can be asked for. */
const CataloguedModel = Schema.Struct({
  id: Schema.String,
  hidden: Schema.Boolean.annotate({ description: "Left out of callers' lists." }),
  targets: Schema.Array(Schema.String).annotate({ description: "Each `upstream/model`, in their order." }),
  facts: Facts.annotate({ description: "A fact that no source has is absent." })
}).annotate({ identifier: "CataloguedModel" })

const ModelsReply = Schema.Struct({ models: Schema.Array(CataloguedModel) }).annotate({ identifier: "ModelsReply" })

export class AdminModelsGroup extends HttpApiGroup.make("admin-models").add(
  HttpApiEndpoint.get("list", "/admin/models", { success: ModelsReply }).annotateMerge(documented({
    summary: "List models with their facts",
    description:
      "All models and routes in the order of callers' lists, hidden ones too. The `source` of a fact is `entry` (that of the model or the " +
      "route), `server` (the server's own list), `model_facts`, `known` (the product's table) or `targets` (all targets of a route).",
    errors: reading
  }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: models and their facts") {}
