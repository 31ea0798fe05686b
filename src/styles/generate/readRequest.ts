/**
 * Reads the bodies of the content-generation style: brings them to the form of the schemas, then counts and decodes them.
 * Errors name fields in camelCase, whichever spelling the caller used.
 */
import type { Sliced } from "../../domain/stream/slices.ts"
import { each, own, type Pieces, within } from "../../http/decodePieces.ts"
import type { BodyOutline } from "../../http/itemLimits.ts"
import { bodyOf } from "../../http/jsonBody.ts"
import {
  Content,
  EmbedContentRequest,
  FunctionDeclaration,
  GenerateGroup,
  GenerateTool,
  MediaPart,
  Part
} from "./Api.ts"
import { normalizeCountRequest, normalizeEmbedRequest, normalizeRequest } from "./normalizeRequest.ts"

const { endpoints } = GenerateGroup

const generateCountedFields: BodyOutline = {
  turns: ["contents"],
  parts: ["systemInstruction"],
  functions: "functionDeclarations",
  stops: "generationConfig.stopSequences",
  toolNames: "toolConfig.functionCallingConfig.allowedFunctionNames"
}

const content: Pieces = {
  parts: each(Part, {
    functionCall: within({ args: own }),
    functionResponse: within({ response: own, parts: each(MediaPart) })
  })
}

export const generatePieces: Pieces = {
  contents: each(Content, content),
  systemInstruction: within(content),
  tools: each(GenerateTool, {
    functionDeclarations: each(FunctionDeclaration, { parameters: own, parametersJsonSchema: own })
  }),
  generationConfig: within({ responseSchema: own, responseJsonSchema: own })
}

const generateReader = (normalize: (body: unknown) => Sliced<unknown>) =>
  bodyOf(endpoints.generateContent, { outline: generateCountedFields, normalize, pieces: generatePieces })

export const readGenerateRequest = generateReader(normalizeRequest)

/** Reads the body of a token count as a content generation. */
export const readCountRequest = generateReader(normalizeCountRequest)

/** Counts the requests of a batch as turns and the content of a single request as parts. */
const embedCountedFields: BodyOutline = { turns: ["requests"], parts: ["content"], stops: "" }

const embedRequest: Pieces = { content: within(content) }

const embedding = {
  outline: embedCountedFields,
  normalize: normalizeEmbedRequest,
  pieces: { ...embedRequest, requests: each(EmbedContentRequest, embedRequest) }
}

export const readEmbedRequest = bodyOf(endpoints.embedContent, embedding)

export const readBatchEmbedRequest = bodyOf(endpoints.batchEmbedContents, embedding)
