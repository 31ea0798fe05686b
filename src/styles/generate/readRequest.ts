/**
 * Reads the bodies of the content-generation style: brings them to the form of the schemas, then counts and decodes them.
 * Errors name fields in camelCase, whichever spelling the caller used.
 */
import { embedFamily, generateFamily } from "../../domain/families/generate.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import type { CountedFields } from "../../http/bodyLimits.ts"
import { type BodyOptions, payloadReader } from "../../http/jsonBody.ts"
import { type DecodePlan, fields, items, opaque } from "../../http/planDecoder.ts"
import {
  Content,
  EmbedContentRequest,
  FunctionDeclaration,
  GenerateGroup,
  GenerateTool,
  MediaPart,
  Part
} from "./Api.ts"
import { normalizeCountRequest, normalizeEmbedRequest, normalizeRequest, wrappedRequest } from "./normalizeRequest.ts"

const { endpoints } = GenerateGroup

const generateCountedFields: CountedFields = {
  turns: ["contents"],
  parts: ["systemInstruction"],
  functions: "functionDeclarations",
  stops: "generationConfig.stopSequences",
  toolNames: "toolConfig.functionCallingConfig.allowedFunctionNames"
}

const content: DecodePlan = {
  parts: items(Part, {
    functionCall: fields({ args: opaque }),
    functionResponse: fields({ response: opaque, parts: items(MediaPart) })
  })
}

export const generatePlan: DecodePlan = {
  contents: items(Content, content),
  systemInstruction: fields(content),
  tools: items(GenerateTool, {
    functionDeclarations: items(FunctionDeclaration, { parameters: opaque, parametersJsonSchema: opaque })
  }),
  generationConfig: fields({ responseSchema: opaque, responseJsonSchema: opaque })
}

const generateReader = (normalize: (body: unknown) => Cooperative<unknown>, options: BodyOptions = {}) =>
  payloadReader(endpoints.generateContent, {
    ...options,
    outline: generateCountedFields,
    normalize,
    pieces: generatePlan
  })

export const readGenerateRequest = generateReader(normalizeRequest, { family: generateFamily })

/** Reads the body of a token count as a content generation. */
export const readCountRequest = generateReader(normalizeCountRequest, {
  family: generateFamily,
  requestIn: wrappedRequest
})

/** Counts the requests of a batch as turns and the content of a single request as parts. */
const embedCountedFields: CountedFields = { turns: ["requests"], parts: ["content"], stops: "" }

const embedRequest: DecodePlan = { content: fields(content) }

const embedding = {
  family: embedFamily,
  outline: embedCountedFields,
  normalize: normalizeEmbedRequest,
  pieces: { ...embedRequest, requests: items(EmbedContentRequest, embedRequest) }
}

export const readEmbedRequest = payloadReader(endpoints.embedContent, embedding)

export const readBatchEmbedRequest = payloadReader(endpoints.batchEmbedContents, embedding)
