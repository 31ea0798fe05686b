/**
 * The handlers of all admin groups as one layer.
 */
import * as Effect from "effect/Effect"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import { AccountTests } from "./accounts/AccountTests.ts"
import { AdminAccountsHandlers } from "./accounts/Handlers.ts"
import { AdminAuthHandlers, AdminSessionHandlers } from "./auth/Handlers.ts"
import { AdminCapturesHandlers } from "./captures/Handlers.ts"
import { AdminConfigHandlers } from "./config/Handlers.ts"
import { AdminEventsHandlers } from "./events/Handlers.ts"
import { AdminHostHandlers } from "./host/Handlers.ts"
import { HostSync } from "./host/HostSync.ts"
import { AdminKeysHandlers } from "./keys/Handlers.ts"
import { AdminRequestsHandlers } from "./requests/Handlers.ts"
import { AdminRoutesHandlers } from "./routes/Handlers.ts"
import { AdminSamplesHandlers } from "./samples/Handlers.ts"
import { AdminSettingsHandlers } from "./settings/Handlers.ts"
import { AdminNodesHandlers, AdminSelfTestHandlers, AdminVersionHandlers } from "./system/Handlers.ts"
import { LatestRelease } from "./system/LatestRelease.ts"
import { AdminUpstreamsHandlers } from "./upstreams/Handlers.ts"
import { UpstreamTests } from "./upstreams/UpstreamTests.ts"
import { UpstreamViews } from "./upstreams/UpstreamViews.ts"
import { AdminUsageHandlers } from "./usage/Handlers.ts"

/**
 * The HTTP client for calls to the hosting platform and the release server, apart from the client of upstream drivers. It
 * follows no redirect by itself, so that a token stays with the server that it is for.
 */
const layerWebClient: Layer.Layer<HttpClient.HttpClient> = Layer.effect(
  HttpClient.HttpClient,
  Effect.map(
    HttpClient.HttpClient,
    HttpClient.transform((response) =>
      Effect.provideService(response, FetchHttpClient.RequestInit, { redirect: "manual" })
    )
  )
).pipe(Layer.provide(FetchHttpClient.layer))

export const AdminHandlers = Layer.mergeAll(
  AdminAuthHandlers,
  AdminSessionHandlers,
  AdminConfigHandlers,
  AdminSettingsHandlers,
  AdminKeysHandlers,
  AdminUsageHandlers,
  AdminAccountsHandlers.pipe(Layer.provide(AccountTests.layer)),
  AdminUpstreamsHandlers.pipe(Layer.provide(UpstreamViews.layer), Layer.provide(UpstreamTests.layer)),
  AdminRoutesHandlers,
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
