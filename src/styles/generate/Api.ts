/**
 * Contract of the content-generation style: endpoints (spec "Content-generation style").
 *
 * Requests are documented in camelCase; `normalizeRequest` converts the other spellings that the vendor accepts.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { generateErrors } from "../../contracts/generate/clientErrors.ts"
import {
  BatchEmbedContentsRequest,
  BatchEmbedContentsResponse,
  CountTokensBody,
  EmbedContentRequest,
  EmbedContentResponse,
  GenerateChunk,
  GenerateModel,
  GenerateRequest,
  GenerateResponse,
  TokenCount
} from "../../contracts/generate/schema.ts"
import { completing, documented, embedding, finding, reading } from "../../http/documented.ts"
import { GenerateMiddleware, GeneratePublicMiddleware } from "../shared/middleware.ts"

const params = { model: Schema.NonEmptyString }

const contents = [{ role: "user", parts: [{ text: "Say hello in one short sentence." }] }]

const generate = { params, payload: GenerateRequest, success: GenerateResponse }

const stream = {
  params,
  payload: GenerateRequest,
  success: HttpApiSchema.StreamSse({
    events: Schema.Struct({ data: Schema.fromJsonString(Schema.Union([GenerateChunk, generateErrors.body])) })
  })
}

const countTokens = { params, payload: CountTokensBody, success: TokenCount }

const embed = { params, payload: EmbedContentRequest, success: EmbedContentResponse }

const embedBatch = { params, payload: BatchEmbedContentsRequest, success: BatchEmbedContentsResponse }

const generateDocs = (summary: string) =>
  documented({
    summary,
    errors: [...completing, "not_found"],
    example: { contents, systemInstruction: { parts: [{ text: "You are brief." }] } }
  })

const countDocs = (summary: string) =>
  documented({
    summary,
    description: "By the upstream if it counts tokens, otherwise an estimate by the gateway.",
    errors: [...completing, "not_found"],
    example: { contents }
  })

const embedDocs = (summary: string, example: unknown) =>
  documented({
    summary,
    description: "Made by the gateway itself or by the upstream, as `embeddings.provider` says.",
    errors: [...embedding, "not_found"],
    example
  })

const embedExample = { content: contents[0], outputDimensionality: 256 }

const batchExample = { requests: [{ model: "models/upstream-chat", content: contents[0] }] }

/** The content-generation endpoints; the model list needs no credential. */
export class GenerateGroup extends HttpApiGroup.make("generate").add(
  HttpApiEndpoint.post("generateContent", "/v1beta/models/:model:generateContent", generate)
    .annotateMerge(generateDocs("Generate content")),
  HttpApiEndpoint.post("generateContentV1", "/v1/models/:model:generateContent", generate)
    .annotateMerge(generateDocs("Generate content (compatible path)")),
  HttpApiEndpoint.post("streamGenerateContent", "/v1beta/models/:model:streamGenerateContent", stream)
    .annotateMerge(generateDocs("Generate content as a stream")),
  HttpApiEndpoint.post("streamGenerateContentV1", "/v1/models/:model:streamGenerateContent", stream)
    .annotateMerge(generateDocs("Generate content as a stream (compatible path)")),
  HttpApiEndpoint.post("countTokens", "/v1beta/models/:model:countTokens", countTokens)
    .annotateMerge(countDocs("Count the tokens of contents")),
  HttpApiEndpoint.post("countTokensV1", "/v1/models/:model:countTokens", countTokens)
    .annotateMerge(countDocs("Count the tokens of contents (compatible path)")),
  HttpApiEndpoint.post("embedContent", "/v1beta/models/:model:embedContent", embed)
    .annotateMerge(embedDocs("Embed a content", embedExample)),
  HttpApiEndpoint.post("embedContentV1", "/v1/models/:model:embedContent", embed)
    .annotateMerge(embedDocs("Embed a content (compatible path)", embedExample)),
  HttpApiEndpoint.post("batchEmbedContents", "/v1beta/models/:model:batchEmbedContents", embedBatch)
    .annotateMerge(embedDocs("Embed contents", batchExample)),
  HttpApiEndpoint.post("batchEmbedContentsV1", "/v1/models/:model:batchEmbedContents", embedBatch)
    .annotateMerge(embedDocs("Embed contents (compatible path)", batchExample))
).middleware(GenerateMiddleware).add(
  HttpApiEndpoint.get("listModels", "/v1beta/models", {
    success: Schema.Struct({ models: Schema.Array(GenerateModel) })
  }).annotateMerge(documented({ summary: "List the models of the Gemini API", errors: reading }))
    .middleware(GeneratePublicMiddleware),
  HttpApiEndpoint.get("getModel", "/v1beta/models/:model", { params, success: GenerateModel }).annotateMerge(
    documented({
      summary: "Read one of the models of the Gemini API",
      errors: finding
    })
  ).middleware(GeneratePublicMiddleware)
).annotate(OpenApi.Description, "The Gemini API (generateContent); `/v1` is a compatible path of `/v1beta`") {}
