/**
 * The model list of the chat-completions family as a contract (spec "Upstream models"). No credential is needed.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Schema from "effect/Schema"
import { OpenAiPublicEdge } from "../shared/openaiEdges.ts"

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
  HttpApiEndpoint.get("list", "/v1/models", { success: ModelList }),
  HttpApiEndpoint.get("get", "/v1/models/:id", { params: { id: Schema.NonEmptyString }, success: ModelEntry })
).middleware(OpenAiPublicEdge) {}
