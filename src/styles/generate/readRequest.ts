/**
 * Readers of the style's bodies: counted, brought to the form of the schema, then decoded by it.
 */
import type { Sliced } from "../../domain/stream/slices.ts"
import { bodyOf } from "../../http/jsonBody.ts"
import { GenerateGroup } from "./Api.ts"
import { normalizeCountRequest, normalizeEmbedRequest, normalizeRequest } from "./normalizeRequest.ts"
import { embedOutline, embedPieces, generateOutline, generatePieces } from "./outline.ts"

const { endpoints } = GenerateGroup

const normalized = (normalize: (body: unknown) => Sliced<unknown>) =>
  bodyOf(endpoints.generateContent, { outline: generateOutline, normalize, pieces: generatePieces })

/** Reads the body of a content generation. Faults name fields in camelCase, however they were written. */
export const readGenerateRequest = normalized(normalizeRequest)

/** Reads the body of a token count, brought to the form of a content generation. */
export const readCountRequest = normalized(normalizeCountRequest)

const embedding = { outline: embedOutline, normalize: normalizeEmbedRequest, pieces: embedPieces }

/** Reads the body of an embedding. */
export const readEmbedRequest = bodyOf(endpoints.embedContent, embedding)

/** Reads the body of several embeddings. */
export const readBatchEmbedRequest = bodyOf(endpoints.batchEmbedContents, embedding)
