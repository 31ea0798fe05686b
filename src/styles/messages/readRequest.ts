/**
 * Reads the bodies of the messages style: which fields count against the limits, and how large bodies are decoded
 * incrementally.
 */
import { messagesFamily } from "../../domain/families/messages.ts"
import { each, own, type Pieces, within } from "../../http/decodePieces.ts"
import type { CountedFields } from "../../http/itemLimits.ts"
import { payloadReader } from "../../http/jsonBody.ts"
import { MessageParam, MessagesGroup, MessagesTool } from "./Api.ts"
import { ContentBlock, DocumentPart, knownBlocks, ResultBlock, SystemBlock, TextBlock } from "./contentBlocks.ts"

export const messagesCountedFields: CountedFields = {
  turns: ["messages"],
  parts: ["system"],
  stops: "stop_sequences"
}

const document = within({ content: each(DocumentPart) })

const isOwn = (type: unknown): boolean => typeof type === "string" && !knownBlocks.has(type)

const resultPieces: Pieces = ({ type }) =>
  type === "document"
    ? { source: document }
    : type === "search_result"
    ? { content: each(TextBlock) }
    : isOwn(type)
    ? "own"
    : {}

const blockPieces: Pieces = (block) => {
  switch (block["type"]) {
    case "tool_use":
      return { input: own }
    case "tool_result":
      return { content: each(ResultBlock, resultPieces) }
    case "document":
      return { source: document }
    case "search_result":
      return { content: each(TextBlock) }
    default:
      return isOwn(block["type"]) ? "own" : {}
  }
}

export const messagesPlan: Pieces = {
  messages: each(MessageParam, { content: each(ContentBlock, blockPieces) }),
  system: each(SystemBlock),
  tools: each(MessagesTool, { input_schema: own }),
  output_config: within({ format: within({ schema: own }) }),
  output_format: within({ schema: own })
}

const options = { outline: messagesCountedFields, pieces: messagesPlan }

export const readMessagesRequest = payloadReader(MessagesGroup.endpoints.create, {
  ...options,
  family: messagesFamily
})

export const readCountRequest = payloadReader(MessagesGroup.endpoints.countTokens, options)
