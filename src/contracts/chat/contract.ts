/** Chat completions (https://platform.openai.com/docs/api-reference/chat). */
import type { Reply } from "../../domain/Reply.ts"
import type { ConversationContract } from "../Contract.ts"
import { chatFields } from "../shared/chatFields.ts"
import { errorFacts, isError } from "../shared/errorFacts.ts"
import { familyOf } from "../shared/requestSchema.ts"
import { chatFacts } from "./facts.ts"
import { chunkDecoder, recordedForm, type ReplyForm } from "./readReply.ts"
import { decodeChat } from "./readRequest.ts"
import { ChatRequest } from "./schema.ts"
import { chatCompletion, chatFailure, chatFrames, type ChatReplyInfo } from "./writeReply.ts"
import { chatRequest } from "./writeRequest.ts"

/** What a reply repeats of its request. */
interface ReplyAbout extends ChatReplyInfo {
  /** The stream ends with a chunk of usage. */
  readonly includeUsage: boolean
}

/** The contract of chat completions. */
export const chat = {
  id: "openai",
  facts: chatFacts,
  request: familyOf(ChatRequest, { name: "openai chat", vendor: "openai", open: true, fields: chatFields }),
  readRequest: decodeChat,
  writeRequest: chatRequest,
  readReply: (form: ReplyForm = recordedForm()) => chunkDecoder(form),
  writeReply: (about: ReplyAbout) => ({
    whole: (reply: Reply) => chatCompletion(about, reply),
    frames: () => chatFrames(about, about.includeUsage)
  }),
  writeFailure: chatFailure,
  readError: errorFacts,
  isError
} satisfies ConversationContract
