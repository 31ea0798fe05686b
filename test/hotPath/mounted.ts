/**
 * A gateway mounted in another app, on the app's own node server: what an embedder's requests cost.
 */
import { NodeHttpClient, NodeHttpServer, NodeServices } from "@effect/platform-node"
import { Clock, Context, Effect, Exit, Layer, Logger, References, Scope, Tracer } from "effect"
import { HttpMiddleware, HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import type { RawConfig } from "../../src/config/json.ts"
import { ConfigStore, configuredUpstream, gatewayServices, mountGateway, undiciExchanges } from "../../src/index.ts"
import { businessKey } from "../support/gateway.ts"

/** The tracer counts; the app has no spans and no log. */
const counted = (tracer: Tracer.Tracer) =>
  Layer.mergeAll(
    Layer.succeed(Tracer.Tracer, tracer),
    Layer.succeed(References.TracerEnabled, false),
    Layer.succeed(HttpMiddleware.TracerDisabledWhen, () => true),
    Logger.layer([])
  )

/** Starts the app on a free port; `url` is the gateway's. Its upstream is called through undici itself, as the service does it. */
export const startMounted = async (
  config: RawConfig,
  tracer: Tracer.Tracer,
  clock: Clock.Clock
): Promise<{ readonly url: string; readonly stop: () => Promise<void> }> => {
  const gateway = mountGateway("/ai").pipe(
    Layer.provide(gatewayServices(Layer.provide(configuredUpstream, undiciExchanges))),
    Layer.provide(ConfigStore.layerJson({ keys: [businessKey], ...config })),
    Layer.provide([NodeHttpClient.layerUndici, NodeServices.layer])
  )
  const app = HttpRouter.serve(gateway, { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })),
    Layer.provide(counted(tracer))
  )
  const scope = Scope.makeUnsafe()
  const services = await Effect.runPromise(Effect.provideService(Layer.buildWithScope(app, scope), Clock.Clock, clock))
  return {
    url: `${HttpServer.formatAddress(Context.get(services, HttpServer.HttpServer).address)}/ai`,
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
