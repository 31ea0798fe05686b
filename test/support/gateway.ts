/**
 * The whole gateway for tests: the product's layers on a real socket, with the configuration in memory.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import {
  Clock,
  ConfigProvider,
  Context,
  Effect,
  Exit,
  Layer,
  Logger,
  type LogLevel,
  References,
  Scope,
  Tracer
} from "effect"
import { HttpServer } from "effect/http"
import { layerAdminEnvironment } from "../../src/admin/AdminEnvironment.ts"
import { CurrentSliceWatch } from "../../src/config/clock/cooperative.ts"
import { CurrentPace } from "../../src/config/clock/retry.ts"
import { type ConfigServices, ConfigStore } from "../../src/config/ConfigStore.ts"
import { Environment } from "../../src/config/Environment.ts"
import type { RawConfig } from "../../src/config/json.ts"
import type { SliceSize } from "../../src/domain/stream/cooperative.ts"
import { serveGateway } from "../../src/server/serve.ts"
import { makeScriptedDriver } from "../../src/testing/embedded.ts"
import { EmbeddedDriver } from "../../src/upstream/layer.ts"
import { UsageStore } from "../../src/usage/UsageStore.ts"

export const businessKey = "test-key"
export const adminKey = "test-admin-key"

/** A running gateway and its services. */
export interface RunningGateway {
  readonly url: string
  readonly services: Context.Context<
    Layer.Success<ReturnType<typeof serveGateway>> | ConfigServices
  >
  readonly stop: () => Promise<void>
}

/** Options of a gateway for tests. */
export interface GatewayOptions {
  /** Replaces the configuration in memory. */
  readonly store?: Layer.Layer<ConfigServices, unknown, NodeServices.NodeServices>
  /** Receives log lines from `logLevel` on (default `Info`). Without it nothing is logged. */
  readonly logger?: Logger.Logger<unknown, void>
  readonly logLevel?: LogLevel.LogLevel
  /** The gateway's clock. */
  readonly clock?: Clock.Clock
  /** Keeps usage as the group `usage` asks; without it in memory. */
  readonly keepsUsage?: boolean
  /** Called for every full slice of long work. */
  readonly watchSlices?: (size: SliceSize) => void
  /** Sees every primitive that the gateway's fibers evaluate. */
  readonly tracer?: Tracer.Tracer
  /** Environment variables. The variables of the process are ignored. */
  readonly environment?: Readonly<Record<string, string>>
}

// Every gateway adds listeners to stdin; many gateways in one process are not a leak.
process.stdin.setMaxListeners(0)

/** Starts a gateway on a free port. It retries without delay. Without an `upstream` group it uses the embedded upstream, with scripts. */
export const startGateway = async (config: RawConfig = {}, options: GatewayOptions = {}): Promise<RunningGateway> => {
  const layer = serveGateway({ port: 0, host: "127.0.0.1", descriptor: undefined }).pipe(
    Layer.provide(Layer.provide(layerAdminEnvironment, Environment.layer)),
    Layer.provide(options.keepsUsage === true ? Layer.provide(UsageStore.layer, Environment.layer) : Layer.empty),
    Layer.provideMerge(
      options.store ?? ConfigStore.layerJson({ keys: [businessKey], ...config }, { adminKey })
    ),
    Layer.provideMerge(NodeHttpClient.layerUndici),
    Layer.provideMerge(NodeServices.layer),
    Layer.provide(Logger.layer(options.logger === undefined ? [] : [options.logger])),
    Layer.provide(Layer.succeed(References.MinimumLogLevel, options.logLevel ?? "Info")),
    Layer.provide(Layer.succeed(CurrentSliceWatch, options.watchSlices ?? (() => undefined))),
    Layer.provide(Layer.succeed(CurrentPace, 0)),
    Layer.provide(Layer.succeed(EmbeddedDriver, makeScriptedDriver)),
    Layer.provide(options.tracer === undefined ? Layer.empty : Layer.succeed(Tracer.Tracer, options.tracer)),
    Layer.provide(ConfigProvider.layer(ConfigProvider.fromEnvRecord(options.environment ?? {})))
  )
  const scope = Scope.makeUnsafe()
  const services = await Effect.runPromise(
    Effect.updateService(Layer.buildWithScope(layer, scope), Clock.Clock, (clock) => options.clock ?? clock)
  )
  const server = Context.get(services, HttpServer.HttpServer)
  return {
    url: HttpServer.formatAddress(server.address),
    services,
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
