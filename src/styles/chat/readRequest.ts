/**
 * Reads the body of a chat request: which fields count against the limits, and how a large body is decoded incrementally.
 */
import { chatFamily } from "../../domain/families/openai.ts"
import type { CountedFields } from "../../http/bodyLimits.ts"
import { payloadReader } from "../../http/jsonBody.ts"
import { type DecodePlan, fields, items, opaque } from "../../http/planDecoder.ts"
import { ContentPart } from "../shared/chatFamily.ts"
import { AnyChatTool, ChatGroup, ChatMessage, ToolCall } from "./Api.ts"

export const chatCountedFields: CountedFields = {
  turns: ["messages"],
  stops: "stop",
  maps: ["logit_bias"]
}

export const chatPlan: DecodePlan = {
  messages: items(ChatMessage, {
    content: items(ContentPart),
    tool_calls: items(ToolCall, { function: fields({ arguments: opaque }) })
  }),
  tools: items(
    AnyChatTool,
    ({ type }) => type === "function" ? { function: fields({ parameters: opaque }) } : "opaque"
  ),
  response_format: fields({ json_schema: fields({ schema: opaque }) })
}

export const readChatRequest = payloadReader(ChatGroup.endpoints.completions, {
  family: chatFamily,
  outline: chatCountedFields,
  pieces: chatPlan
})
