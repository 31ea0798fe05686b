/**
 * Where a messages-style body has what is counted, and how a large one is taken apart.
 */
import { each, own, type Pieces, within } from "../../http/decodePieces.ts"
import type { BodyOutline } from "../../http/itemLimits.ts"
import { MessageParam, MessagesTool } from "./Api.ts"
import { ContentBlock, DocumentPart, ResultBlock, SystemBlock, TextBlock } from "./contentBlocks.ts"

export const messagesOutline: BodyOutline = {
  turns: ["messages"],
  parts: ["system"],
  stops: "stop_sequences"
}

const document = within({ content: each(DocumentPart) })

const resultPieces: Pieces = ({ type }) =>
  type === "document" ? { source: document } : type === "search_result" ? { content: each(TextBlock) } : {}

const blockPieces: Pieces = (block) => {
  const { type } = block
  switch (type) {
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
