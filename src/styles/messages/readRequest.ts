/**
 * Reads the bodies of the messages style.
 */
import { messagesFields } from "../../domain/families/messages.ts"
import { familyOf } from "../../domain/families/requestSchema.ts"
import { payloadReader } from "../../http/jsonBody.ts"
import { MessagesGroup, MessagesRequest } from "./Api.ts"

export const messagesFamily = familyOf(MessagesRequest, {
  name: "messages",
  vendor: "messages",
  open: true,
  fields: messagesFields
})

export const readMessagesRequest = payloadReader(MessagesGroup.endpoints.create, { family: messagesFamily })

export const readCountRequest = payloadReader(MessagesGroup.endpoints.countTokens, { family: messagesFamily })
