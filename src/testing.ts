/**
 * `model-gateway/testing`: the whole gateway in one line, over the reference upstream with its faults and holds. For tests of
 * code that uses the gateway; it needs no packages beyond the gateway's own. `OpenAiServer` is a scripted OpenAI-compatible server.
 */
export type { CallName } from "./contracts/session/readRequest.ts"
export type { Report, SeenRequest } from "./testing/CallLog.ts"
export { GatewayTest } from "./testing/GatewayTest.ts"
export type { GatewayTestOptions } from "./testing/GatewayTest.ts"
export type { KnownAccount } from "./testing/Identities.ts"
export { OpenAiServer } from "./testing/OpenAiServer.ts"
export type { ScriptedAnswer, ScriptedCall, ScriptedRefusal, ScriptedReply } from "./testing/OpenAiServer.ts"
export type { SeenRequest as SeenServerRequest } from "./testing/openAiSocket.ts"
export type { FaultOrder, ReferenceOptions, ReplyOrder } from "./testing/Provider.ts"
export { faultTable } from "./testing/provider/faults.ts"
export type { Fault, FaultName } from "./testing/provider/faults.ts"
export { layer as referenceLayer, make as makeReference, Reference } from "./testing/Reference.ts"
