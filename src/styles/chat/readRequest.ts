/**
 * Reads the body of a chat request.
 */
import { chat } from "../../contracts/chat/contract.ts"
import { requestReader } from "../../http/jsonBody.ts"
import { ChatGroup } from "./Api.ts"

export const readChatRequest = requestReader(ChatGroup.endpoints.completions, { family: chat.request })
