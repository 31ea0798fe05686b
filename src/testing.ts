/**
 * `model-gateway/testing`: the reference upstream, with its faults and holds, and the whole gateway over it in one line. For
 * tests of what uses the gateway; it needs nothing but what the gateway itself does.
 */
export { GatewayTest } from "./inProcess/GatewayTest.ts"
export type { GatewayTestOptions } from "./inProcess/GatewayTest.ts"
export type { CallName } from "./testing/envelope.ts"
export type { Fault, FaultName } from "./testing/Fault.ts"
export { faultTable } from "./testing/faults.ts"
export type { Report, SeenRequest } from "./testing/Ledger.ts"
export type { KnownAccount, ReferenceOptions } from "./testing/Options.ts"
export type { FaultOrder, ReplyOrder } from "./testing/Orders.ts"
export { layer as referenceLayer, make as makeReference, Reference } from "./testing/Reference.ts"
