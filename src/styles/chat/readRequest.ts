/**
 * Reads the body of a chat request: which fields count against the limits, and how a large body is decoded incrementally.
 */
import { chatFamily } from "../../domain/families/openai.ts"
import { each, own, type Pieces, within } from "../../http/decodePieces.ts"
import type { CountedFields } from "../../http/itemLimits.ts"
import { payloadReader } from "../../http/jsonBody.ts"
import { ContentPart } from "../shared/chatFamily.ts"
import { ChatGroup, ChatMessage, ChatTool, ToolCall } from "./Api.ts"

export const chatCountedFields: CountedFields = {
  turns: ["messages"],
  stops: "stop",
  maps: ["logit_bias"]
}

export const chatPlan: Pieces = {
  messages: each(ChatMessage, {
    content: each(ContentPart),
    tool_calls: each(ToolCall, { function: within({ arguments: own }) })
  }),
  tools: each(ChatTool, { function: within({ parameters: own }) }),
  response_format: within({ json_schema: within({ schema: own }) })
}

export const readChatRequest = payloadReader(ChatGroup.endpoints.completions, {
  family: chatFamily,
  outline: chatCountedFields,
  pieces: chatPlan
})
