/**
 * Reads the bodies of the messages style: which fields count against the limits, and how large bodies are decoded
 * incrementally.
 */
import { each, own, type Pieces, within } from "../../http/decodePieces.ts"
import type { BodyOutline } from "../../http/itemLimits.ts"
import { bodyOf } from "../../http/jsonBody.ts"
import { MessageParam, MessagesGroup, MessagesTool } from "./Api.ts"
import { ContentBlock, DocumentPart, ResultBlock, SystemBlock, TextBlock } from "./contentBlocks.ts"

export const messagesCountedFields: BodyOutline = {
  turns: ["messages"],
  parts: ["system"],
  stops: "stop_sequences"
}

const document = within({ content: each(DocumentPart) })

const resultPieces: Pieces = ({ type }) =>
  type === "document" ? { source: document } : type === "search_result" ? { content: each(TextBlock) } : {}

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
      return {}
  }
}

export const messagesPieces: Pieces = {
  messages: each(MessageParam, { content: each(ContentBlock, blockPieces) }),
  system: each(SystemBlock),
  tools: each(MessagesTool, { input_schema: own }),
  output_config: within({ format: within({ schema: own }) }),
  output_format: within({ schema: own })
}

const options = { outline: messagesCountedFields, pieces: messagesPieces }

export const readMessagesRequest = bodyOf(MessagesGroup.endpoints.create, options)

export const readCountRequest = bodyOf(MessagesGroup.endpoints.countTokens, options)
