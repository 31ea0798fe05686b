/**
 * Contract of the embeddings style (spec "Chat-completions style", `/v1/embeddings`).
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { passed } from "../../contracts/shared/Family.ts"
import { request } from "../../contracts/shared/requestSchema.ts"
import { dimensionsRange } from "../../domain/Embeddings.ts"
import { optional } from "../../domain/schemas.ts"
import { documented, embedding } from "../../http/documented.ts"
import { OpenAiMiddleware } from "../shared/middleware.ts"

const fields = {
  model: Schema.NonEmptyString.annotate({
    description: "An id of `upstream.models`, a well-known embedding model, a native model id or an alias."
  }),
  dimensions: optional(Schema.Int.check(Schema.isBetween(dimensionsRange))).annotate({
    description: "Length of the vectors. The default is 256 for vectors of the gateway, else the upstream's."
  }),
  encoding_format: optional(Schema.Literals(["float", "base64"])).annotate({
    description: "`float` (the default) or `base64`."
  }),
  user: optional(Schema.String).annotate(request({ fate: passed() }))
}

/** Body of `POST /v1/embeddings`. */
export const EmbeddingsRequest = Schema.Struct({
  ...fields,
  input: Schema.Union([
    Schema.NonEmptyString,
    Schema.NonEmptyArray(Schema.NonEmptyString),
    Schema.NonEmptyArray(Schema.Int),
    Schema.NonEmptyArray(Schema.NonEmptyArray(Schema.Int))
  ]).annotate({ description: "A text, texts, a token array or token arrays." })
}).annotate({ identifier: "EmbeddingsRequest" })

/** The body as it is read. `decodeInputs` checks the elements in slices: a body may have millions. */
export const EmbeddingsBody = Schema.Struct({
  ...fields,
  input: Schema.Union([Schema.String, Schema.Array(Schema.Unknown)])
})

/** A list of embeddings, in the order of the inputs. */
export const EmbeddingsList = Schema.Struct({
  object: Schema.Literal("list"),
  data: Schema.Array(Schema.Struct({
    object: Schema.Literal("embedding"),
    index: Schema.Int,
    /** Numbers, or the Base64 of their little-endian 32-bit floats. */
    embedding: Schema.Union([Schema.Array(Schema.Finite), Schema.String])
  })),
  model: Schema.String,
  usage: Schema.Struct({ prompt_tokens: Schema.Int, total_tokens: Schema.Int })
}).annotate({ identifier: "EmbeddingsList" })

/** The embeddings endpoint. */
export class EmbeddingsGroup extends HttpApiGroup.make("embeddings").add(
  HttpApiEndpoint.post("create", "/v1/embeddings", { payload: EmbeddingsRequest, success: EmbeddingsList })
    .annotateMerge(documented({
      summary: "Create embeddings",
      description: "Made by the gateway itself or by the upstream, as `embeddings.provider` says.",
      errors: embedding,
      example: { model: "upstream-chat", input: ["one text", "another"] }
    }))
).middleware(OpenAiMiddleware).annotate(OpenApi.Description, "Embeddings") {}
