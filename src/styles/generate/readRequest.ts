/**
 * Readers of the style's bodies: brought to the form of the schema first, then decoded by it.
 */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { jsonBody } from "../../http/jsonBody.ts"
import { GenerateRequest } from "./Api.ts"
import { normalizeCountRequest, normalizeRequest } from "./normalizeRequest.ts"

const normalized = (normalize: (body: unknown) => unknown) =>
  jsonBody(
    Schema.Unknown.pipe(
      Schema.decode(SchemaTransformation.transform({ decode: normalize, encode: (body) => body })),
      Schema.decodeTo(GenerateRequest, SchemaTransformation.passthrough({ strict: false }))
    )
  )

/** Reads the body of a content generation. Faults name fields in camelCase, however they were written. */
export const readGenerateRequest = normalized(normalizeRequest)

/** Reads the body of a token count. */
export const readCountRequest = normalized(normalizeCountRequest)
