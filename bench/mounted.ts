/**
 * The gateway mounted at `/ai` of another app's server, configured by `GATEWAY_CONFIG_JSON` and `GATEWAY_LOG_LEVEL` like the service.
 *
 * Run as `node bench/mounted.ts`, which calls the upstream through undici as the documents advise, or as
 * `node bench/mounted.ts client`, which calls it through the app's `HttpClient`; prints its address.
 */
import { NodeHttpClient, NodeHttpServer, NodeRuntime, NodeServices } from "@effect/platform-node"
import * as Console from "effect/Console"
import * as Effect from "effect/Effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import { createServer } from "node:http"
import {
  ConfigStore,
  configuredUpstream,
  GatewayServices,
  gatewayServices,
  mountGateway,
  undiciExchanges
} from "../src/index.ts"

const Gateway = mountGateway("/ai").pipe(
  Layer.provide(
    process.argv[2] === "client" ? GatewayServices : gatewayServices(Layer.provide(configuredUpstream, undiciExchanges))
  ),
  Layer.provide(ConfigStore.layerMemory(JSON.parse(process.env["GATEWAY_CONFIG_JSON"] ?? "{}"))),
  Layer.provide([NodeHttpClient.layerUndici, NodeServices.layer])
)

const Server = HttpRouter.serve(Gateway, { disableLogger: true, disableListenLog: true }).pipe(
  Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })),
  Layer.provide(
    Layer.succeed(References.MinimumLogLevel, process.env["GATEWAY_LOG_LEVEL"] === "error" ? "Error" : "Info")
  )
)

const main = Effect.gen(function*() {
  const { address } = yield* HttpServer.HttpServer
  yield* Console.log(`The app listens on ${HttpServer.formatAddress(address)}`)
  return yield* Effect.never
})

NodeRuntime.runMain(Effect.provide(main, Server))
