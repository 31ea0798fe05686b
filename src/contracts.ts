/**
 * The contracts of clients and servers, pure, for browsers too: how each is read and written, and its facts.
 */
export type { ContractFacts, ConversationContract, ReplyWriter } from "./contracts/Contract.ts"
export { contractOfConversation, contractOfDriver } from "./contracts/contractOf.ts"
export { contracts } from "./contracts/contracts.ts"
export { clientReader, type RecordedReader, serverReader } from "./contracts/recordedReader.ts"
export type { SseEvent } from "./domain/stream/sse.ts"
export type { UpstreamEvent } from "./domain/UpstreamEvent.ts"
