/**
 * The whole gateway without a socket, for tests that send thousands of requests or control the clock.
 */
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import * as NodeServices from "@effect/platform-node/NodeServices"
import type { Scope } from "effect"
import { Context, Effect, Layer, Logger } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpEffect, HttpRouter, HttpServer } from "effect/http"
import { CurrentPace } from "../../src/config/clock/retry.ts"
import { ConfigStore } from "../../src/config/ConfigStore.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { GatewayRoutes, GatewayServices, routerConfig } from "../../src/server/Gateway.ts"
import { businessKey } from "./gateway.ts"

const Router = Layer.fresh(
  Layer.provide(HttpRouter.layer, Layer.succeed(HttpRouter.RouterConfig, routerConfig))
)

/** Builds a gateway on the embedded upstream in the current scope, with the current clock. */
export const webGateway = Effect.fnUntraced(function*(config: RawConfig = {}) {
  const around = yield* Effect.context()
  const built = yield* Layer.build(
    GatewayRoutes.pipe(
      Layer.provideMerge(Router),
      Layer.provideMerge(GatewayServices),
      Layer.provideMerge(ConfigStore.layerJson({ keys: [businessKey], ...config })),
      Layer.provideMerge([NodeHttpClient.layerUndici, NodeServices.layer, HttpServer.layerServices]),
      Layer.provide([Logger.layer([]), Layer.succeed(CurrentPace, 0)])
    )
  )
  const handle = HttpEffect.toWebHandlerWith<never, HttpServerRequest.HttpServerRequest | Scope.Scope>(
    Context.merge(around, built)
  )(Context.get(built, HttpRouter.HttpRouter).asHttpEffect())
  const fetch: typeof globalThis.fetch = (input, init) => handle(new Request(input, init))
  return fetch
})

/** A `fetch` to the gateway that also records the responses. */
export const overheard = (fetch: typeof globalThis.fetch) => {
  let said = ""
  const listening: typeof globalThis.fetch = async (input, init) => {
    const response = await fetch(input, init)
    if (response.body === null) return response
    const heard = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(bytes, controller) {
          said += new TextDecoder().decode(bytes)
          controller.enqueue(bytes)
        }
      })
    )
    return new Response(heard, response)
  }
  return { fetch: listening, said: () => said }
}
