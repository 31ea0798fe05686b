/**
 * Reads the bodies of the messages style.
 */
import { messages } from "../../contracts/messages/contract.ts"
import { requestReader } from "../../http/jsonBody.ts"
import { MessagesGroup } from "./Api.ts"

export const readMessagesRequest = requestReader(MessagesGroup.endpoints.create, { family: messages.request })

export const readCountRequest = requestReader(MessagesGroup.endpoints.countTokens, { family: messages.request })
