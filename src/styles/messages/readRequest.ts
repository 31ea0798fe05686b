/**
 * Reads the bodies of the messages style.
 */
import { messagesFields } from "../../domain/families/messages.ts"
import { familyOf } from "../../domain/families/requestSchema.ts"
import { requestReader } from "../../http/jsonBody.ts"
import { MessagesGroup, MessagesRequest } from "./Api.ts"

export const messagesFamily = familyOf(MessagesRequest, {
  name: "messages",
  vendor: "messages",
  open: true,
  fields: messagesFields
})

export const readMessagesRequest = requestReader(MessagesGroup.endpoints.create, { family: messagesFamily })

export const readCountRequest = requestReader(MessagesGroup.endpoints.countTokens, { family: messagesFamily })
