/**
 * Contract of the chat-completions family's model list (spec "Upstream models"). It needs no credential unless `auth.public_models` is off.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { documented, finding, reading } from "../../http/documented.ts"
import { OpenAiPublicMiddleware } from "../shared/middleware.ts"

/** An entry of the list. */
export const ModelEntry = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("model"),
  created: Schema.Int,
  owned_by: Schema.Literal("upstream"),
  permission: Schema.Array(Schema.Json)
}).annotate({ identifier: "Model" })

/** The list. */
export const ModelList = Schema.Struct({ object: Schema.Literal("list"), data: Schema.Array(ModelEntry) })

export class ModelsGroup extends HttpApiGroup.make("models").add(
  HttpApiEndpoint.get("list", "/v1/models", { success: ModelList }).annotateMerge(
    documented({
      summary: "List models",
      description:
        "The models that can be asked for: natives, configured ones, routes, and those that the server lists. A valid key " +
        "gets those that it may use. A credential is needed where `auth.public_models` is off.",
      errors: reading
    })
  ),
  HttpApiEndpoint.get("get", "/v1/models/:id", { params: { id: Schema.NonEmptyString }, success: ModelEntry })
    .annotateMerge(documented({
      summary: "Read a model",
      description: "Accepts an alias and returns the model that it stands for.",
      errors: finding
    }))
).middleware(OpenAiPublicMiddleware).annotate(OpenApi.Description, "Models of the chat-completions style") {}
