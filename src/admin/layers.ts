/**
 * The handlers of all admin groups as one layer.
 */
import * as Layer from "effect/Layer"
import { layerWebClient } from "../upstream/transports/webClient.ts"
import { AccountTests } from "./accounts/AccountTests.ts"
import { AdminAccountsHandlers } from "./accounts/Handlers.ts"
import { AdminAuthHandlers, AdminSessionHandlers } from "./auth/Handlers.ts"
import { AdminCapturesHandlers } from "./captures/Handlers.ts"
import { AdminConfigHandlers } from "./config/Handlers.ts"
import { AdminEventsHandlers } from "./events/Handlers.ts"
import { AdminChangesHandlers } from "./history/Handlers.ts"
import { AdminHostHandlers } from "./host/Handlers.ts"
import { HostSync } from "./host/HostSync.ts"
import { AdminKeysHandlers } from "./keys/Handlers.ts"
import { AdminMinutesHandlers } from "./minutes/Handlers.ts"
import { AdminModelsHandlers } from "./models/Handlers.ts"
import { AdminPricesHandlers } from "./prices/Handlers.ts"
import { AdminRequestsHandlers } from "./requests/Handlers.ts"
import { AdminRoutesHandlers } from "./routes/Handlers.ts"
import { AdminSamplesHandlers } from "./samples/Handlers.ts"
import { AdminSettingsHandlers } from "./settings/Handlers.ts"
import { AdminNodesHandlers, AdminSelfTestHandlers, AdminVersionHandlers } from "./system/Handlers.ts"
import { LatestRelease } from "./system/LatestRelease.ts"
import { AdminTokensHandlers } from "./tokens/Handlers.ts"
import { AdminUpstreamsHandlers } from "./upstreams/Handlers.ts"
import { UpstreamTests } from "./upstreams/UpstreamTests.ts"
import { UpstreamViews } from "./upstreams/UpstreamViews.ts"
import { AdminUsageHandlers } from "./usage/Handlers.ts"
import { AdminWebhooksHandlers } from "./webhooks/Handlers.ts"

export const AdminHandlers = Layer.mergeAll(
  AdminAuthHandlers,
  AdminSessionHandlers,
  AdminConfigHandlers,
  AdminSettingsHandlers,
  AdminKeysHandlers,
  AdminUsageHandlers,
  AdminMinutesHandlers,
  AdminChangesHandlers,
  AdminTokensHandlers,
  AdminAccountsHandlers.pipe(Layer.provide(AccountTests.layer)),
  AdminUpstreamsHandlers.pipe(Layer.provide(UpstreamViews.layer), Layer.provide(UpstreamTests.layer)),
  AdminModelsHandlers,
  AdminPricesHandlers,
  AdminRoutesHandlers,
  AdminSelfTestHandlers,
  AdminCapturesHandlers,
  AdminSamplesHandlers,
  AdminNodesHandlers,
  AdminRequestsHandlers,
  AdminEventsHandlers,
  AdminWebhooksHandlers,
  AdminHostHandlers.pipe(
    Layer.provide(HostSync.layer),
    Layer.provide(AccountTests.layer),
    Layer.provide(layerWebClient)
  ),
  AdminVersionHandlers.pipe(Layer.provide(LatestRelease.layer), Layer.provide(layerWebClient))
)
