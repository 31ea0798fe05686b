/**
 * Where a chat-completions body has what is counted, and how a large one is taken apart.
 */
import { each, own, type Pieces, within } from "../../http/decodePieces.ts"
import type { BodyOutline } from "../../http/itemLimits.ts"
import { ContentPart } from "../shared/contentParts.ts"
import { ChatMessage, ChatTool, ToolCall } from "./Api.ts"

export const chatOutline: BodyOutline = {
  turns: ["messages"],
  stops: "stop",
  maps: ["logit_bias"]
}

export const chatPieces: Pieces = {
  messages: each(ChatMessage, {
    content: each(ContentPart),
    tool_calls: each(ToolCall, { function: within({ arguments: own }) })
  }),
  tools: each(ChatTool, { function: within({ parameters: own }) }),
  response_format: within({ json_schema: within({ schema: own }) })
}
