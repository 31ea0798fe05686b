/**
 * Readers of the style's bodies: counted, brought to the form of the schema, then decoded by it.
 */
import { jsonBody } from "../../http/jsonBody.ts"
import type { Sliced } from "../../stream/slices.ts"
import { GenerateRequest } from "./Api.ts"
import { normalizeCountRequest, normalizeRequest } from "./normalizeRequest.ts"
import { generateOutline, generatePieces } from "./outline.ts"

const normalized = (normalize: (body: unknown) => Sliced<unknown>) =>
  jsonBody(GenerateRequest, { outline: generateOutline, normalize, pieces: generatePieces })

/** Reads the body of a content generation. Faults name fields in camelCase, however they were written. */
export const readGenerateRequest = normalized(normalizeRequest)

/** Reads the body of a token count. */
export const readCountRequest = normalized(normalizeCountRequest)
