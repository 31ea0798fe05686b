/**
 * Reads the bodies of the content-generation style: brings them to the form of the schemas, then counts and decodes them.
 * Errors name fields in camelCase, whichever spelling the caller used.
 */
import * as Schema from "effect/Schema"
import { generate } from "../../contracts/generate/contract.ts"
import { camelCase, embedFields } from "../../contracts/generate/family.ts"
import {
  normalizeCountRequest,
  normalizeEmbedRequest,
  normalizeRequest,
  wrappedRequest
} from "../../contracts/generate/normalizeRequest.ts"
import { BatchEmbedContentsRequest, EmbedContentRequest } from "../../contracts/generate/schema.ts"
import { familyOf } from "../../contracts/shared/requestSchema.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import { type BodyOptions, requestReader } from "../../http/jsonBody.ts"
import { GenerateGroup } from "./Api.ts"

const { endpoints } = GenerateGroup

/** Of one embedding and of a batch. */
export const embedFamily = familyOf(
  Schema.Struct({ ...EmbedContentRequest.fields, ...BatchEmbedContentsRequest.fields }),
  { name: "generate embeddings", open: true, spelling: camelCase, fields: embedFields }
)

const generateReader = (normalize: (body: unknown) => Cooperative<unknown>, options: BodyOptions = {}) =>
  requestReader(endpoints.generateContent, { ...options, family: generate.request, normalize })

export const readGenerateRequest = generateReader(normalizeRequest)

/** Reads the body of a token count as a content generation. */
export const readCountRequest = generateReader(normalizeCountRequest, { requestIn: wrappedRequest })

const embedding = { family: embedFamily, normalize: normalizeEmbedRequest }

export const readEmbedRequest = requestReader(endpoints.embedContent, embedding)

export const readBatchEmbedRequest = requestReader(endpoints.batchEmbedContents, embedding)
