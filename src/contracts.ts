/**
 * `model-gateway/contracts`: the contracts of clients and servers, pure, for browsers too: how each is read and written, and its facts.
 */
export { chat } from "./contracts/chat/contract.ts"
export type { Contract, ContractFacts, ConversationContract, ReplyWriter } from "./contracts/Contract.ts"
export { contractOfConversation, contractOfDriver } from "./contracts/contractOf.ts"
export { contracts } from "./contracts/contracts.ts"
export { generate } from "./contracts/generate/contract.ts"
export { messages } from "./contracts/messages/contract.ts"
export { clientReader, type RecordedReader, serverReader } from "./contracts/recordedReader.ts"
export { responses } from "./contracts/responses/contract.ts"
export { call, declaration, imageAt, result } from "./contracts/shared/conversation.ts"
export { Faults } from "./contracts/shared/Faults.ts"
export { type Conversation, plainConversation, Text } from "./domain/Conversation.ts"
export { runSync } from "./domain/stream/cooperative.ts"
export type { SseEvent } from "./domain/stream/sse.ts"
export type { UpstreamEvent } from "./domain/UpstreamEvent.ts"
