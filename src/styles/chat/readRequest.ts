/**
 * Reads the body of a chat request.
 */
import { ChatRequest } from "../../contracts/chat/schema.ts"
import { chatFields } from "../../contracts/shared/chatFields.ts"
import { familyOf } from "../../contracts/shared/requestSchema.ts"
import { requestReader } from "../../http/jsonBody.ts"
import { ChatGroup } from "./Api.ts"

export const chatFamily = familyOf(ChatRequest, {
  name: "openai chat",
  vendor: "openai",
  open: true,
  fields: chatFields
})

export const readChatRequest = requestReader(ChatGroup.endpoints.completions, { family: chatFamily })
