/**
 * `model-gateway/testing`: the reference upstream, with its faults and holds, and the whole gateway over it in one line. For
 * tests of what uses the gateway; it needs nothing but what the gateway itself does.
 */
export { GatewayTest } from "./embed/GatewayTest.ts"
export type { GatewayTestOptions } from "./embed/GatewayTest.ts"
export type { CallName } from "./upstream/reference/envelope.ts"
export type { Fault, FaultName } from "./upstream/reference/Fault.ts"
export { faultTable } from "./upstream/reference/faults.ts"
export type { Report, SeenRequest } from "./upstream/reference/Ledger.ts"
export type { KnownAccount, ReferenceOptions } from "./upstream/reference/Options.ts"
export type { FaultOrder, ReplyOrder } from "./upstream/reference/Orders.ts"
export { layer as referenceLayer, make as makeReference, Reference } from "./upstream/reference/Reference.ts"
