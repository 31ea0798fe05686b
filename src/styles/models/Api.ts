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

const Effort = Schema.Struct({ effort: Schema.Literals(["low", "medium", "high"]), description: Schema.String })

/** An entry of the list that codex reads: without one of these fields codex refuses the whole list. */
export const CodexModel = Schema.Struct({
  slug: Schema.String,
  display_name: Schema.String,
  description: Schema.Null,
  supported_reasoning_levels: Schema.Array(Effort),
  shell_type: Schema.Literal("unified_exec"),
  visibility: Schema.Literal("list"),
  supported_in_api: Schema.Literal(true),
  priority: Schema.Int,
  availability_nux: Schema.Null,
  upgrade: Schema.Null,
  /** The prompt of the agent. */
  base_instructions: Schema.String,
  supports_reasoning_summaries: Schema.Boolean,
  support_verbosity: Schema.Literal(false),
  default_verbosity: Schema.Null,
  apply_patch_tool_type: Schema.Null,
  truncation_policy: Schema.Struct({ mode: Schema.Literal("tokens"), limit: Schema.Int }),
  supports_parallel_tool_calls: Schema.Literal(true),
  experimental_supported_tools: Schema.Array(Schema.String),
  /** Left out where the gateway does not know it. */
  input_modalities: Schema.optionalKey(Schema.Array(Schema.Literal("text")))
}).annotate({ identifier: "CodexModel" })

/** The list. */
export const ModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(ModelEntry),
  /** Only for a client that names its version, as codex does. */
  models: Schema.optionalKey(Schema.Array(CodexModel))
})

export class ModelsGroup extends HttpApiGroup.make("models").add(
  HttpApiEndpoint.get("list", "/v1/models", {
    query: { client_version: Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)])) },
    success: ModelList
  }).annotateMerge(
    documented({
      summary: "List models",
      description:
        "The models that can be asked for: natives, configured ones, routes, and those that the server lists. A valid key " +
        "gets those that it may use. A credential is needed where `auth.public_models` is off. With `client_version` the reply " +
        "has the models in the form of codex too.",
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
