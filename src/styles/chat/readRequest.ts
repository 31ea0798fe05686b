/**
 * Reads the body of a chat request.
 */
import { chatFields } from "../../domain/families/openai.ts"
import { familyOf } from "../../domain/families/requestSchema.ts"
import { requestReader } from "../../http/jsonBody.ts"
import { ChatGroup, ChatRequest } from "./Api.ts"

export const chatFamily = familyOf(ChatRequest, {
  name: "openai chat",
  vendor: "openai",
  open: true,
  fields: chatFields
})

export const readChatRequest = requestReader(ChatGroup.endpoints.completions, { family: chatFamily })
