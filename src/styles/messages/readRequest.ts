/**
 * Reads the bodies of the messages style.
 */
import { messagesFields } from "../../contracts/messages/family.ts"
import { MessagesRequest } from "../../contracts/messages/schema.ts"
import { familyOf } from "../../contracts/shared/requestSchema.ts"
import { requestReader } from "../../http/jsonBody.ts"
import { MessagesGroup } from "./Api.ts"

export const messagesFamily = familyOf(MessagesRequest, {
  name: "messages",
  vendor: "messages",
  open: true,
  fields: messagesFields
})

export const readMessagesRequest = requestReader(MessagesGroup.endpoints.create, { family: messagesFamily })

export const readCountRequest = requestReader(MessagesGroup.endpoints.countTokens, { family: messagesFamily })
