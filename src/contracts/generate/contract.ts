/** The content-generation contract (https://ai.google.dev/api/generate-content). */
import type { Conversation } from "../../domain/Conversation.ts"
import type { Reply } from "../../domain/Reply.ts"
import type { Cooperative } from "../../domain/stream/cooperative.ts"
import type { ConversationContract } from "../Contract.ts"
import { familyOf } from "../shared/requestSchema.ts"
import { errorFacts, isError } from "./errors.ts"
import { generateFacts } from "./facts.ts"
import { camelCase, generateFields } from "./family.ts"
import { chunkDecoder } from "./readReply.ts"
import { decodeGenerate } from "./readRequest.ts"
import { GenerateRequest } from "./schema.ts"
import { generateFailure, generateFrames, type GenerateReplyInfo, generateResponse } from "./writeReply.ts"
import { generateRequest, plainServer, type RequestOptions } from "./writeRequest.ts"

/** The contract of content generation. */
export const generate = {
  id: "generate",
  facts: generateFacts,
  request: familyOf(GenerateRequest, {
    name: "generate",
    vendor: "generate",
    open: true,
    spelling: camelCase,
    fields: generateFields
  }),
  readRequest: decodeGenerate,
  // The name of the model, and whether the reply is streamed, are in the path.
  *writeRequest(
    name: string,
    conversation: Conversation,
    server: RequestOptions = plainServer(name)
  ): Cooperative<string> {
    return JSON.stringify(yield* generateRequest(conversation, server))
  },
  readReply: (form?: { readonly isOwn: boolean }) => chunkDecoder(form?.isOwn),
  writeReply: (about: GenerateReplyInfo) => ({
    whole: (reply: Reply) => generateResponse(about, reply),
    frames: () => generateFrames(about)
  }),
  writeFailure: generateFailure,
  readError: errorFacts,
  isError
} satisfies ConversationContract
