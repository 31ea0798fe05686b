/**
 * `model-gateway/pool`: where a request goes, pure: the order of its targets, and the slots of pools of accounts with their queues. Times are
 * arguments.
 */
export { runSync } from "./domain/stream/cooperative.ts"
export type { Choose, PoolChoice } from "./placement/choice.ts"
export { failedAt, leavingOut, nothingTried, place } from "./placement/place.ts"
export type { PlacedTarget, Placement, PlaceRequest, Reason, Tried } from "./placement/place.ts"
export { Pools } from "./placement/Pools.ts"
export type { PoolConfig, PoolsRequest } from "./placement/Pools.ts"
export type { LeaseRequest, Limits, Needs, Refusal, Slot, Waiter } from "./placement/PoolState.ts"
