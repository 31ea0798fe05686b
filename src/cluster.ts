/**
 * `model-gateway/cluster`: nodes over a store that they share. Its modules are loaded with it alone.
 */
export { Store } from "./cluster/store/Store.ts"
export type { StoreOptions } from "./cluster/store/Store.ts"
export { StoreInvalid, StoreUnavailable } from "./cluster/store/StoreShape.ts"
export { serveSharedGateway, SharedState } from "./server/serveShared.ts"
export { layerSharedCalls, layerSharedResponses } from "./styles/responses/store/sharedResponses.ts"
