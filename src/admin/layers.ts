/**
 * The part of the admin API that runs the gateway, as layers: its groups' handlers and edges.
 */
import * as Layer from "effect/Layer"
import { AccountTests } from "./accounts/AccountTests.ts"
import { AdminAccountsHandlers } from "./accounts/Handlers.ts"
import { AdminAuthHandlers } from "./auth/Handlers.ts"
import { AdminCapturesHandlers } from "./captures/Handlers.ts"
import { AdminConfigHandlers } from "./config/Handlers.ts"
import { AdminEventsHandlers } from "./events/Handlers.ts"
import { AdminHostHandlers } from "./host/Handlers.ts"
import { HostSync } from "./host/HostSync.ts"
import { AdminKeysHandlers } from "./keys/Handlers.ts"
import { AdminNodesHandlers } from "./nodes/Handlers.ts"
import { AdminRequestsHandlers } from "./requests/Handlers.ts"
import { AdminSamplesHandlers } from "./samples/Handlers.ts"
import { AdminSelfTestHandlers } from "./selfTest/Handlers.ts"
import { AdminSessionHandlers } from "./session/Handlers.ts"
import { AdminSettingsHandlers } from "./settings/Handlers.ts"
import { AdminUsageHandlers } from "./usage/Handlers.ts"
import { AdminVersionHandlers } from "./version/Handlers.ts"
import { LatestRelease } from "./version/LatestRelease.ts"
import { layerWebClient } from "./webClient.ts"

export const AdminHandlers = Layer.mergeAll(
  AdminAuthHandlers,
  AdminSessionHandlers,
  AdminConfigHandlers,
  AdminSettingsHandlers,
  AdminKeysHandlers,
  AdminUsageHandlers,
  AdminAccountsHandlers.pipe(Layer.provide(AccountTests.layer)),
  AdminSelfTestHandlers,
  AdminCapturesHandlers,
  AdminSamplesHandlers,
  AdminNodesHandlers,
  AdminRequestsHandlers,
  AdminEventsHandlers,
  AdminHostHandlers.pipe(
    Layer.provide(HostSync.layer),
    Layer.provide(AccountTests.layer),
    Layer.provide(layerWebClient)
  ),
  AdminVersionHandlers.pipe(Layer.provide(LatestRelease.layer), Layer.provide(layerWebClient))
)
