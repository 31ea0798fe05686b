/**
 * Contract of the list of models (spec "Upstream models"), in the form of the caller: OpenAI's, Anthropic's, or codex's beside OpenAI's. It
 * needs no credential unless `auth.public_models` is off.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { AnthropicModel, AnthropicModelPage } from "../../contracts/messages/anthropicModels.ts"
import { effortLevels } from "../../domain/modelFacts.ts"
import { documented, finding, reading } from "../../http/documented.ts"
import { ModelsMiddleware } from "../shared/middleware.ts"

/**
 * An entry of the list. What is known of the model follows the fields that every entry has, with the names that OpenRouter and vLLM have for
 * it.
 */
export const ModelEntry = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("model"),
  created: Schema.Int,
  owned_by: Schema.Literal("upstream"),
  permission: Schema.Array(Schema.Json),
  name: Schema.optionalKey(Schema.String),
  description: Schema.optionalKey(Schema.String),
  context_length: Schema.optionalKey(Schema.Int),
  max_model_len: Schema.optionalKey(Schema.Int),
  architecture: Schema.optionalKey(Schema.Struct({
    input_modalities: Schema.optionalKey(Schema.Array(Schema.String)),
    output_modalities: Schema.optionalKey(Schema.Array(Schema.String))
  })),
  top_provider: Schema.optionalKey(Schema.Struct({
    context_length: Schema.optionalKey(Schema.Int),
    max_completion_tokens: Schema.optionalKey(Schema.Int)
  })),
  supported_parameters: Schema.optionalKey(Schema.Array(Schema.String)),
  efforts: Schema.optionalKey(Schema.Array(Schema.Literals(effortLevels))),
  pricing: Schema.optionalKey(
    Schema.Record(Schema.String, Schema.String).annotate({
      description: "Prices of a token, and of a request, in the currency of `prices`; for clients with a valid key."
    })
  )
}).annotate({ identifier: "Model" })

const Effort = Schema.Struct({ effort: Schema.Literals(effortLevels), description: Schema.String })

/** An entry of the list that codex reads: without one of the fields that are not optional codex refuses the whole list. */
export const CodexModel = Schema.Struct({
  slug: Schema.String,
  display_name: Schema.String,
  description: Schema.NullOr(Schema.String),
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
  /** Each is left out where the gateway does not know it. */
  context_window: Schema.optionalKey(Schema.Int),
  max_context_window: Schema.optionalKey(Schema.Int),
  input_modalities: Schema.optionalKey(Schema.Array(Schema.Literals(["text", "image"])))
}).annotate({ identifier: "CodexModel" })

/** The list. */
export const ModelList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(ModelEntry),
  /** Only for a client that names its version, as codex does. */
  models: Schema.optionalKey(Schema.Array(CodexModel))
})

const text = Schema.optionalKey(Schema.Union([Schema.String, Schema.Array(Schema.String)]))

export class ModelsGroup extends HttpApiGroup.make("models").add(
  HttpApiEndpoint.get("list", "/v1/models", {
    query: { client_version: text, limit: text, after_id: text, before_id: text },
    success: [ModelList, AnthropicModelPage]
  }).annotateMerge(
    documented({
      summary: "List models",
      description:
        "The models that can be asked for: natives, configured ones, routes, and those that the server lists, without hidden ones. A " +
        "valid key gets those that it may use. A credential is needed where `auth.public_models` is off. With `client_version` the " +
        "reply has the models in the form of codex too. With the header `anthropic-version`, or with `x-api-key` and no " +
        "`Authorization`, the reply has the form of Anthropic, and `limit`, `after_id` and `before_id` page it. `ETag` names the " +
        "content, and `If-None-Match` gives 304 while it is the same.",
      errors: reading
    })
  ),
  HttpApiEndpoint.get("get", "/v1/models/:id", {
    params: { id: Schema.NonEmptyString },
    success: [ModelEntry, AnthropicModel]
  })
    .annotateMerge(documented({
      summary: "Read a model",
      description: "Accepts an alias and returns the model that it stands for. The form is the same as in the list.",
      errors: finding
    }))
).middleware(ModelsMiddleware).annotate(OpenApi.Description, "Lists of models") {}
