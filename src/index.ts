/**
 * `model-gateway`: the gateway as layers for other Effect apps. Each part is usable by itself.
 *
 * - `mountGateway(path)` serves the whole gateway below a path of an `HttpRouter`. It needs `GatewayServices`, which need a
 *   `ConfigStore`, an `HttpClient` and the platform's file system.
 * - `complete` and `completeStream` run completions without HTTP; `languageModel` is the gateway as the `LanguageModel` of an
 *   app.
 * - `gatewayServices(upstream)` takes the app's own upstream: any `Driver`, or a `LanguageModel`.
 * - `Accounts` is the account pool alone.
 * - `Keys`, `AccountEntries`, `Routes`, `UpstreamEntries`, `Tokens`, `Prices` and `Webhooks` change the configuration by the rules of the admin
 *   API.
 *
 * `model-gateway/contracts`, `model-gateway/sieve`, `model-gateway/transducer` and `model-gateway/api` need no server. `model-gateway/testing` is the
 * gateway with its upstream for tests.
 */
export { Accounts } from "./accounts/Accounts.ts"
export { anywhere } from "./accounts/Accounts.ts"
export type { AccountPool, Caller, Lease, PlacementRequest, QueueStatus } from "./accounts/Accounts.ts"
export { AdminSecrets } from "./accounts/AdminSecrets.ts"
export { Callers } from "./accounts/Callers.ts"
export { CredentialThrottles } from "./accounts/CredentialThrottles.ts"
export { UpstreamActivity } from "./accounts/UpstreamActivity.ts"
export { AdminAuth } from "./admin/auth/AdminAuth.ts"
export { Nodes } from "./admin/nodes/Nodes.ts"
export { Completion } from "./completion/Completion.ts"
export type { CompletedReply, CompletionInput, CompletionOutput } from "./completion/Completion.ts"
export { layerCompletion } from "./completion/makeCompletion.ts"
export { beginRequest } from "./completion/Request.ts"
export type { Request } from "./completion/Request.ts"
export type { RequestStats } from "./completion/RequestStats.ts"
export { CurrentRequestWatch } from "./completion/RequestStats.ts"
export type { RequestWatch } from "./completion/RequestStats.ts"
export { UsageRecorder } from "./completion/UsageRecorder.ts"
export { AdminCredentials } from "./config/AdminCredentials.ts"
export { Deadlines } from "./config/clock/Deadlines.ts"
export { ConfigConflict, ConfigFileError, ConfigInvalid } from "./config/ConfigError.ts"
export { ConfigOrigin } from "./config/ConfigOrigin.ts"
export { ConfigStore } from "./config/ConfigStore.ts"
export type { ConfigServices, Saved, UpdateError, UpdateOptions } from "./config/ConfigStore.ts"
export { ConfigTransfer } from "./config/ConfigTransfer.ts"
export type { ConfigInput } from "./config/document.ts"
export type { AccountMarks, NewAccount } from "./config/entries/accountEdits.ts"
export { AccountEntries } from "./config/entries/AccountEntries.ts"
export type { AccountSaved } from "./config/entries/AccountEntries.ts"
export type { KeysSaved } from "./config/entries/endedKey.ts"
export type { KeyEntry } from "./config/entries/keyIndex.ts"
export type { KeyFields } from "./config/entries/keyRecord.ts"
export { Keys } from "./config/entries/Keys.ts"
export type { KeyAdded, KeyChanged, NewKey } from "./config/entries/Keys.ts"
export { Prices } from "./config/entries/Prices.ts"
export { Routes } from "./config/entries/Routes.ts"
export { Tokens } from "./config/entries/Tokens.ts"
export type { NewToken, TokenAdded } from "./config/entries/Tokens.ts"
export { UpstreamEntries } from "./config/entries/UpstreamEntries.ts"
export type { UpstreamRemoved } from "./config/entries/UpstreamEntries.ts"
export { Webhooks } from "./config/entries/Webhooks.ts"
export { Environment, EnvironmentInvalid } from "./config/Environment.ts"
export type { GatewayConfig } from "./config/GatewayConfig.ts"
export { ListedModels } from "./config/ListedModels.ts"
export { SharedRevision } from "./config/sharedConfig.ts"
export * as Conversation from "./domain/Conversation.ts"
export { GatewayError } from "./domain/GatewayError.ts"
export * as Reply from "./domain/Reply.ts"
export * as ReplyEvent from "./domain/ReplyEvent.ts"
export type { Usage } from "./domain/ReplyEvent.ts"
export * as UpstreamEvent from "./domain/UpstreamEvent.ts"
export type { PartialUsage } from "./domain/UpstreamEvent.ts"
export { UpstreamFailure } from "./domain/UpstreamFailure.ts"
export type { UpstreamModel } from "./domain/UpstreamModel.ts"
export { complete, completeStream, openReply } from "./inProcess/complete.ts"
export type { InProcessReply, InProcessRequest } from "./inProcess/complete.ts"
export { fixedUpstream } from "./inProcess/driver.ts"
export { languageModel, makeLanguageModel } from "./inProcess/languageModel.ts"
export type { LanguageModelOptions } from "./inProcess/languageModel.ts"
export { languageModelUpstream, makeLanguageModelDriver } from "./inProcess/languageModelDriver.ts"
export type { LanguageModelDriverOptions } from "./inProcess/languageModelDriver.ts"
export { mountGateway } from "./inProcess/mountGateway.ts"
export { Captures } from "./recordings/Captures.ts"
export { SampleFolder } from "./recordings/SampleFolder.ts"
export { GatewayApi } from "./server/Api.ts"
export { limitConnections } from "./server/connections/Connections.ts"
export { GatewayRoutes, GatewayServices, gatewayServices, routerConfig } from "./server/Gateway.ts"
export { Lifecycle } from "./server/Lifecycle.ts"
export { Gauges } from "./server/observability/gauges.ts"
export { Observability, watchRequests } from "./server/observability/Observability.ts"
export { serveGateway } from "./server/serve.ts"
export { InProcessState } from "./server/services.ts"
export type { GatewayState } from "./server/services.ts"
export { layerResponses } from "./styles/responses/store/memoryResponses.ts"
export { ResponsesStore } from "./styles/responses/store/ResponsesStore.ts"
export { makeOpenAiDriver, makeResponsesDriver } from "./upstream/compatible/driver.ts"
export { makeEmbeddedDriver } from "./upstream/embedded/driver.ts"
export type { EmbeddedOptions } from "./upstream/embedded/driver.ts"
export { Exchanges } from "./upstream/Exchange.ts"
export type { Exchange, ExchangeLimits, ExchangeOptions } from "./upstream/Exchange.ts"
export type { ExchangeRequest } from "./upstream/ExchangeRequest.ts"
export { makeGenerateDriver } from "./upstream/generate/driver.ts"
export { layer as configuredUpstream } from "./upstream/layer.ts"
export { type GivenDriver, makeDriver } from "./upstream/makeDriver.ts"
export { makeMessagesDriver } from "./upstream/messages/driver.ts"
export type { ServerOptions } from "./upstream/server/ServerOptions.ts"
export { makeSessionDriver } from "./upstream/session/driver.ts"
export type { SessionOptions } from "./upstream/session/driver.ts"
export { exchangesOf, layerHttpClient as httpClientExchanges } from "./upstream/transports/httpClient.ts"
export { layerUndici as undiciExchanges } from "./upstream/transports/undici.ts"
export type {
  Capabilities,
  CompletionReply,
  CompletionRequest,
  Credential,
  Driver,
  Login,
  Recorder,
  RelayedBody,
  RelayedReply,
  RelayedRequest,
  RoundRecorder,
  UpstreamSession
} from "./upstream/Upstream.ts"
export { Upstreams } from "./upstream/Upstreams.ts"
export type { Drivers } from "./upstream/Upstreams.ts"
export type { Admitted, Used } from "./usage/Admission.ts"
export type { KeyCounters } from "./usage/Batch.ts"
export { KeyLimits } from "./usage/KeyLimits.ts"
export { Refused } from "./usage/KeyLimits.ts"
export type { AdmissionRequest, KeyUsage } from "./usage/KeyLimits.ts"
export type { SqliteOptions } from "./usage/sqliteStore.ts"
export { measureNames, measuresOf } from "./usage/UsageEntry.ts"
export type { Measures, Sums, UsageEntry } from "./usage/UsageEntry.ts"
export type { Grouping, UsageQuery, UsageReport, UsageRow } from "./usage/UsageQuery.ts"
export { UsageStore } from "./usage/UsageStore.ts"
export type { StoreStatus, UsageStoreShape } from "./usage/UsageStoreShape.ts"
