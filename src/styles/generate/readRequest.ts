/**
 * Readers of the style's bodies: counted, brought to the form of the schema, then decoded by it.
 */
import { jsonBody } from "../../http/jsonBody.ts"
import type { Sliced } from "../../stream/slices.ts"
import { BatchEmbedContentsRequest, EmbedContentRequest, GenerateRequest } from "./Api.ts"
import { normalizeCountRequest, normalizeEmbedRequest, normalizeRequest } from "./normalizeRequest.ts"
import { embedOutline, embedPieces, generateOutline, generatePieces } from "./outline.ts"

const normalized = (normalize: (body: unknown) => Sliced<unknown>) =>
  jsonBody(GenerateRequest, { outline: generateOutline, normalize, pieces: generatePieces })

/** Reads the body of a content generation. Faults name fields in camelCase, however they were written. */
export const readGenerateRequest = normalized(normalizeRequest)

/** Reads the body of a token count. */
export const readCountRequest = normalized(normalizeCountRequest)

const embedding = { outline: embedOutline, normalize: normalizeEmbedRequest, pieces: embedPieces }

/** Reads the body of an embedding. */
export const readEmbedRequest = jsonBody(EmbedContentRequest, embedding)

/** Reads the body of several embeddings. */
export const readBatchEmbedRequest = jsonBody(BatchEmbedContentsRequest, embedding)
