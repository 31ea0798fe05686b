/** The messages contract (https://docs.anthropic.com/en/api/messages). */
import type { GatewayError } from "../../domain/GatewayError.ts"
import type { Reply } from "../../domain/Reply.ts"
import type { ConversationContract } from "../Contract.ts"
import { errorFacts } from "../shared/errorFacts.ts"
import { familyOf } from "../shared/requestSchema.ts"
import { messagesFacts } from "./facts.ts"
import { messagesFields } from "./family.ts"
import { eventDecoder, isError } from "./readReply.ts"
import { decodeMessages } from "./readRequest.ts"
import { MessagesRequest } from "./schema.ts"
import { messageObject, messagesFailure, messagesFrames, type MessagesReplyInfo } from "./writeReply.ts"
import { messagesRequest } from "./writeRequest.ts"

/** What a reply says of its request. */
interface ReplyAbout extends MessagesReplyInfo {
  /** The estimated tokens of the prompt, with which a stream begins. */
  readonly promptTokens: number
}

/** The contract of messages. */
export const messages = {
  id: "messages",
  facts: messagesFacts,
  request: familyOf(MessagesRequest, { name: "messages", vendor: "messages", open: true, fields: messagesFields }),
  readRequest: decodeMessages,
  writeRequest: messagesRequest,
  readReply: () => eventDecoder(),
  writeReply: (about: ReplyAbout) => ({
    whole: (reply: Reply) => messageObject(about, reply),
    frames: () => messagesFrames(about, about.promptTokens)
  }),
  writeFailure: (error: GatewayError, requestId: string) => messagesFailure(requestId)(error),
  readError: errorFacts,
  isError
} satisfies ConversationContract
