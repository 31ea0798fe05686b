/**
 * Embeddings as a contract (spec "Chat-completions style", `/v1/embeddings`).
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Schema from "effect/Schema"
import { dimensionsRange } from "../../embeddings/inputs.ts"
import { OpenAiEdge } from "../shared/openaiEdges.ts"

const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const fields = {
  model: Schema.NonEmptyString,
  dimensions: optional(Schema.Int.check(Schema.isBetween(dimensionsRange))),
  encoding_format: optional(Schema.Literals(["float", "base64"])),
  user: optional(Schema.String)
}

/** Body of `POST /v1/embeddings`. */
export const EmbeddingsRequest = Schema.Struct({
  ...fields,
  input: Schema.Union([
    Schema.NonEmptyString,
    Schema.NonEmptyArray(Schema.NonEmptyString),
    Schema.NonEmptyArray(Schema.Int),
    Schema.NonEmptyArray(Schema.NonEmptyArray(Schema.Int))
  ])
}).annotate({ identifier: "EmbeddingsRequest" })

/** The same as it is read: `decodeInputs` looks at the elements, which can be millions, once and in place. */
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
).middleware(OpenAiEdge) {}
