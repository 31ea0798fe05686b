/**
 * The gateway as a node of a cluster, whose state lies in a store that the nodes share. Loaded with a store alone.
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Accounts } from "../accounts/Accounts.ts"
import { AdminSecrets } from "../accounts/AdminSecrets.ts"
import { Nodes } from "../admin/nodes/Nodes.ts"
import { currentVersion } from "../admin/system/build.ts"
import { layerSharedNotices } from "../cluster/store/noticeClaims.ts"
import { Store, type StoreOptions } from "../cluster/store/Store.ts"
import { ConfigStore } from "../config/ConfigStore.ts"
import { layerSharedCalls, layerSharedResponses } from "../styles/responses/store/sharedResponses.ts"
import { layerSharedRefusals } from "../upstream/sharedRefusals.ts"
import { KeyLimits } from "../usage/KeyLimits.ts"
import { UsageStore } from "../usage/UsageStore.ts"
import type { ListenOptions } from "./listen.ts"
import { NodeUpstream, serveServices } from "./serveServices.ts"
import { gatewayServices } from "./services.ts"

/** State shared by the nodes of a cluster. Needs a `Store` and the shared configuration (`ConfigStore.layerShared`). */
export const SharedState = Nodes.layerShared(currentVersion).pipe(
  Layer.provideMerge(Accounts.layerShared),
  Layer.merge(Layer.provideMerge(layerSharedCalls, layerSharedResponses)),
  Layer.merge(AdminSecrets.layerShared),
  Layer.merge(KeyLimits.layerShared),
  Layer.merge(layerSharedNotices),
  Layer.merge(layerSharedRefusals)
)

const SharedGatewayServices = gatewayServices(NodeUpstream, SharedState)

/** Serves the gateway as a node of a cluster. Provides the services of the routes. */
export const serveSharedGateway = (options: ListenOptions) => serveServices(options, SharedGatewayServices, Effect.void)

/** Serves a node of a store. `opening` runs before the first request is answered. */
export const serveNode = <E, R>(listen: ListenOptions, store: StoreOptions, opening: Effect.Effect<unknown, E, R>) =>
  serveServices(listen, SharedGatewayServices, opening).pipe(
    Layer.provide(UsageStore.layerShared),
    Layer.provideMerge(ConfigStore.layerShared),
    Layer.provide(Store.layerRedis(store))
  )
