/**
 * Where a content-generation body in the schema's form has what is counted, and how a large one is taken apart.
 */
import { each, own, type Pieces, within } from "../../http/decodePieces.ts"
import type { BodyOutline } from "../../http/itemLimits.ts"
import { Content, EmbedContentRequest, FunctionDeclaration, GenerateTool, MediaPart, Part } from "./Api.ts"

export const generateOutline: BodyOutline = {
  turns: ["contents"],
  parts: ["systemInstruction"],
  functions: "functionDeclarations",
  stops: "generationConfig.stopSequences",
  toolNames: "toolConfig.functionCallingConfig.allowedFunctionNames"
}

const partPieces: Pieces = {
  functionCall: within({ args: own }),
  functionResponse: within({ response: own, parts: each(MediaPart) })
}

/** Of one embedding and of several. */
export const embedOutline: BodyOutline = { turns: ["requests"], parts: ["content"], stops: "" }

const content: Pieces = { parts: each(Part, partPieces) }

export const generatePieces: Pieces = {
  contents: each(Content, content),
  systemInstruction: within(content),
  tools: each(GenerateTool, {
    functionDeclarations: each(FunctionDeclaration, { parameters: own, parametersJsonSchema: own })
  }),
  generationConfig: within({ responseSchema: own, responseJsonSchema: own })
}

const embedding: Pieces = { content: within(content) }

export const embedPieces: Pieces = { ...embedding, requests: each(EmbedContentRequest, embedding) }
