/**
 * Reads the bodies of the messages style: which fields count against the limits, and how large bodies are decoded
 * incrementally.
 */
import { messagesFamily } from "../../domain/families/messages.ts"
import type { CountedFields } from "../../http/bodyLimits.ts"
import { payloadReader } from "../../http/jsonBody.ts"
import { type DecodePlan, fields, items, opaque } from "../../http/planDecoder.ts"
import { MessageParam, MessagesGroup, MessagesTool } from "./Api.ts"
import { ContentBlock, DocumentPart, knownBlocks, ResultBlock, SystemBlock, TextBlock } from "./contentBlocks.ts"

export const messagesCountedFields: CountedFields = {
  turns: ["messages"],
  parts: ["system"],
  stops: "stop_sequences"
}

const document = fields({ content: items(DocumentPart) })

const isOwn = (type: unknown): boolean => typeof type === "string" && !knownBlocks.has(type)

const resultPieces: DecodePlan = ({ type }) =>
  type === "document"
    ? { source: document }
    : type === "search_result"
    ? { content: items(TextBlock) }
    : isOwn(type)
    ? "opaque"
    : {}

const blockPieces: DecodePlan = (block) => {
  switch (block["type"]) {
    case "tool_use":
      return { input: opaque }
    case "tool_result":
      return { content: items(ResultBlock, resultPieces) }
    case "document":
      return { source: document }
    case "search_result":
      return { content: items(TextBlock) }
    default:
      return isOwn(block["type"]) ? "opaque" : {}
  }
}

export const messagesPlan: DecodePlan = {
  messages: items(MessageParam, { content: items(ContentBlock, blockPieces) }),
  system: items(SystemBlock),
  tools: items(MessagesTool, { input_schema: opaque }),
  output_config: fields({ format: fields({ schema: opaque }) }),
  output_format: fields({ schema: opaque })
}

const options = { family: messagesFamily, outline: messagesCountedFields, pieces: messagesPlan }

export const readMessagesRequest = payloadReader(MessagesGroup.endpoints.create, options)

export const readCountRequest = payloadReader(MessagesGroup.endpoints.countTokens, options)
